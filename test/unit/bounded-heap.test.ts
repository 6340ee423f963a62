import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const source = join(import.meta.dirname, '..', '..', 'src', 'bounded-heap.ts');
const MB = 1e6;
/** Both halves, of which each may end a third above its limit of 16 MB. */
const LIMIT = 44 * MB;

/** Allocates while 600,000 objects stay alive, and prints the size of the young generation. */
const allocating = `
  import { setImmediate as nextTurn } from 'node:timers/promises';
  import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  import { boundHeap } from ${JSON.stringify(source)};
  const young = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size;
  const allocate = async (count) => {
    const kept = [];
    for (let index = 0; index < count; index += 1) {
      kept[index % 600000] = { index, rest: [index] };
      if (index % 20000 === 0) await nextTurn();
    }
  };
  const shrink = () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  };
`;

async function run(script: string, flags: readonly string[] = []): Promise<number[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...flags,
    '--input-type=module',
    '--eval',
    allocating + script,
  ]);
  return stdout.trim().split(' ').map(Number);
}

test('the young generation does not outgrow its limit, and does without it', async () => {
  const load = 'await allocate(2e6); console.log(young());';
  const [[bounded], [free]] = await Promise.all([run(`boundHeap(process.execArgv); ${load}`), run(load)]);
  expect(bounded).toBeLessThanOrEqual(LIMIT);
  expect(bounded).toBeGreaterThan(20 * MB);
  expect(free).toBeGreaterThan(LIMIT);
});

test('the old generation is collected when it has grown by half', async () => {
  const load = `
    const alive = Array.from({ length: 200000 }, (_, index) => ({ index }));
    let most = 0;
    for (let round = 0; round < 30; round += 1) {
      await allocate(2e5);
      most = Math.max(most, process.memoryUsage().heapTotal);
    }
    console.log(most, alive.length);`;
  const [[bounded], [free]] = await Promise.all([run(`boundHeap(process.execArgv); ${load}`), run(load)]);
  expect(bounded).toBeLessThan((free ?? 0) * 0.8);
});

test('a young generation that was shrunk while idle grows again under load, to its limit', async () => {
  const [before, shrunk, after] = await run(`
    boundHeap(process.execArgv);
    await allocate(1e6);
    const before = young();
    shrink();
    const shrunk = young();
    let most = 0;
    // A slow machine may shrink it again.
    for (let round = 0; round < 20 && most < 2e7; round += 1) {
      await allocate(5e5);
      most = Math.max(most, young());
    }
    console.log(before, shrunk, most);`);
  expect(shrunk).toBeLessThan((before ?? 0) / 2);
  expect(after).toBeGreaterThan(20 * MB);
  expect(after).toBeLessThanOrEqual(LIMIT);
});

test('a process that was started with limits of its own keeps them', async () => {
  const load = 'boundHeap(process.execArgv); await allocate(2e6); console.log(young());';
  const [size] = await run(load, ['--max-semi-space-size=2']);
  expect(size).toBeLessThan(6 * MB);
});
