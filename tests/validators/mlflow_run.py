"""What MLflow keeps of an audit that some lines of Python log as a run, as JSON: mlflow_run.py LINES STORE."""

import json
import os
import sys
from pathlib import Path

# A folder as its store needs no database.
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow_scripts"))

import mlflow


def kept(lines, store):
    """Name, metrics, tags and artifacts of the run, whose identifier the lines name run_id."""
    mlflow.set_tracking_uri(Path(store).as_uri())
    names = {}
    exec(lines, names)
    run = mlflow.get_run(names["run_id"])
    artifacts = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=""))
    files = [path.relative_to(artifacts).as_posix() for path in artifacts.rglob("*") if path.is_file()]
    return {
        "name": run.info.run_name,
        "status": run.info.status,
        "metrics": run.data.metrics,
        "tags": run.data.tags,
        "files": sorted(files),
        "folder": str(artifacts),
    }


if __name__ == "__main__":
    print(json.dumps(kept(*sys.argv[1:])))
