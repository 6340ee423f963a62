import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { addChunk, type Chunk, readChunks, seedAfter, sumOfChunks } from '../../simulation/runs/chunks.ts';
import { noSeeds } from '../../simulation/runs/tally.ts';

const chunkOf = (part: Partial<Chunk>): Chunk => ({
  ...noSeeds,
  ...{ from: 1, size: 10, steps: 200, date: '2026-01-01T10:00:00.000Z', commit: 'aaaaaaa', isClean: true },
  ...{ machine: 'a machine', seconds: 60 },
  ...part,
});

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chunks-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'chunks.jsonl');
}

test('a run begins after the seeds that earlier ones have run', () => {
  const file = newFile();
  expect(seedAfter(readChunks(file), 1)).toBe(1);
  addChunk(file, chunkOf({ from: 1, size: 500 }));
  addChunk(file, chunkOf({ from: 501, size: 20 }));
  expect(seedAfter(readChunks(file), 1)).toBe(521);
});

test('chunks are added up, and it stays known which commit has run which seeds', () => {
  const failure = { seed: '14', message: 'seed 14 fails at step 3: money is missing' };
  const chunks = [
    chunkOf({ from: 1, crashes: 7, outcomes: { crash: 7, 'createWallet done': 2 } }),
    chunkOf({ from: 11, crashes: 5, outcomes: { crash: 5 }, failures: [failure] }),
    chunkOf({ from: 21, commit: 'bbbbbbb', date: '2026-01-02T10:00:00.000Z', outcomes: { crash: 1 } }),
    chunkOf({ from: 31, commit: 'bbbbbbb', date: '2026-01-03T10:00:00.000Z', isClean: false }),
  ];
  expect(sumOfChunks(chunks)).toMatchObject({
    ...{ size: 40, crashes: 12, seconds: 240, steps: 200, failures: [failure] },
    outcomes: { crash: 13, 'createWallet done': 2 },
    seeds: [
      '1 to 20 at aaaaaaa, 2026-01-01, a machine',
      '21 to 30 at bbbbbbb, 2026-01-02, a machine',
      '31 to 40 at bbbbbbb with changes, 2026-01-03, a machine',
    ].join('; '),
  });
});

test('a seed counts once, and all take as many steps', () => {
  expect(() => sumOfChunks([chunkOf({ from: 1 }), chunkOf({ from: 10 })])).toThrow('the seed 10 is in two');
  expect(() => sumOfChunks([chunkOf({ from: 1 }), chunkOf({ from: 11, steps: 50 })])).toThrow('50 steps');
});
