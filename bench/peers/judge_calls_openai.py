"""Chat completions through the openai SDK, 64 at a time: prints the CPU seconds and the scores.

Usage: .envs/openai/bin/python bench/peers/judge_calls_openai.py URL BODIES.json
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from openai import AsyncOpenAI

CONCURRENCY = 64
WARMING = 100


async def main():
    url, path = sys.argv[1:]
    bodies = json.loads(Path(path).read_text())
    client = AsyncOpenAI(base_url=url, api_key="sk-bench-0123456789")

    async def score(body):
        reply = await client.chat.completions.create(**body)
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
