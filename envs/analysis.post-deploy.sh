#!/bin/sh
# Snakemake runs this in the environment that conda made. Written by tools/lock.py.
exec python -I tools/install.py \
  altair==6.3.0 \
  annotated-types==0.8.0 \
  arcp==0.2.1 \
  attrs==26.1.0 \
  certifi==2026.10.18 \
  charset-normalizer==3.5.2 \
  click==8.5.1 \
  idna==3.20 \
  jinja2==3.1.6 \
  jsonschema==4.26.0 \
  jsonschema-specifications==2025.9.1 \
  lxml==6.1.3 \
  markupsafe==3.0.4 \
  narwhals==2.28.0 \
  numpy==2.4.6 \
  packaging==25.0 \
  pandas==3.1.1 \
  pikepdf==10.18.0 \
  pillow==13.0.0 \
  pyarrow==26.0.1 \
  pydantic==2.14.3 \
  pydantic-core==2.50.4 \
  python-dateutil==4.0.0 \
  pyyaml==6.0.3 \
  referencing==0.37.0 \
  requests==2.34.2 \
  rocrate==0.16.0 \
  rpds-py==2026.9.1 \
  scipy==1.17.1 \
  typing-extensions==4.16.0 \
  typing-inspection==0.4.5 \
  tzdata==2026.6 \
  urllib3==2.8.0 \
  vl-convert-python==1.9.0.post1
