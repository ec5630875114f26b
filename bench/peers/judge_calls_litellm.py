"""Chat completions through litellm, 64 at a time: prints the CPU seconds and the scores.

Usage: .envs/litellm/bin/python bench/peers/judge_calls_litellm.py URL BODIES.json
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

# Otherwise it fetches its price table from the network when imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

CONCURRENCY = 64
WARMING = 100
litellm.telemetry = False
litellm.suppress_debug_info = True


async def main():
    url, path = sys.argv[1:]
    bodies = json.loads(Path(path).read_text())

    async def score(body):
        body = body | {"model": f"openai/{body['model']}"}
        reply = await litellm.acompletion(**body, api_base=url, api_key="sk-bench-0123456789")
        return json.loads(reply.choices[0].message.content)["score"]

    async def worked(items):
        rest = iter(enumerate(items))
        results = [None] * len(items)

        async def worker():
            for place, item in rest:
                results[place] = await score(item)

        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
        return results

    await worked(bodies[:WARMING])
    start = time.process_time()
    scores = await worked(bodies[WARMING:])
    print(json.dumps({"seconds": time.process_time() - start, "scores": scores}))


asyncio.run(main())
