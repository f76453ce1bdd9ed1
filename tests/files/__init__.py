"""Model files of every version of the format, and the script that writes those of the present one."""
