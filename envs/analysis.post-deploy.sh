#!/bin/sh
# Snakemake runs this in the environment that conda made. Written by tools/lock.py.
exec python -I tools/install.py \
  annotated-types==0.8.0 \
  arcp==0.2.1 \
  certifi==2026.10.18 \
  charset-normalizer==3.5.2 \
  click==8.5.1 \
  contourpy==1.3.3 \
  cycler==0.12.1 \
  fonttools==4.68.0 \
  idna==3.20 \
  jinja2==3.1.6 \
  kiwisolver==1.5.1 \
  markupsafe==3.0.4 \
  matplotlib==3.11.2 \
  numpy==2.4.6 \
  packaging==25.0 \
  pandas==3.1.1 \
  pillow==13.0.0 \
  pyarrow==26.0.1 \
  pydantic==2.14.3 \
  pydantic-core==2.50.4 \
  pyparsing==3.3.3 \
  python-dateutil==4.0.0 \
  pyyaml==6.0.3 \
  requests==2.34.2 \
  rocrate==0.16.0 \
  scipy==1.17.1 \
  typing-extensions==4.16.0 \
  typing-inspection==0.4.5 \
  tzdata==2026.6 \
  urllib3==2.8.0
