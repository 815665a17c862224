"""What lies in S3: keys, arrays, manifests, tasks and run objects, and the bucket they live in.

This package is the only place that knows key names. Modules are imported one by one
(`from blockstore.bucket import Bucket`), so that a worker function pays only for what it uses.
"""
