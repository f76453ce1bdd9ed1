# A container that trains, predicts and serves: `make build`, then `docker build -t forel .`
# Models and data are in /data: `docker run --rm -v "$PWD:/data" forel train clicks.csv --label click --model m.forel`
# A server: `docker run --rm -p 127.0.0.1:8080:8080 -v "$PWD:/data" forel serve log --host 0.0.0.0 --token-file token`
FROM python:3.13-slim

COPY dist/forel-*.whl /tmp/
RUN python -m pip install --no-cache-dir "$(ls /tmp/forel-*.whl)[gzip,serve]" \
    && rm /tmp/forel-*.whl \
    && useradd --create-home --uid 1000 forel \
    && mkdir -p /data /var/cache/forel \
    && chown forel /data /var/cache/forel

USER forel
ENV FOREL_CACHE=/var/cache/forel
# Compile what usual runs need, so that a container does not compile when it starts.
RUN python -m forel dev warm

WORKDIR /data
ENTRYPOINT ["python", "-m", "forel"]
CMD ["--help"]
