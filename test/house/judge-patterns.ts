import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from 'recheck';
import { collectPatterns } from './collect-patterns.ts';
import { root } from './source-files.ts';

/** The checker's answer about a pattern. */
export interface Verdict {
  readonly status: 'safe' | 'vulnerable' | 'unknown';
  /** A string that takes longest: each pump is repeated after its prefix. */
  readonly attack?: {
    readonly pumps: readonly { readonly prefix: string; readonly pump: string }[];
    readonly suffix: string;
  };
}

const file = join(root, 'test/house/judged-patterns.json');

export function judgedPatterns(): Record<string, Verdict> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Verdict>;
}

/** Asks recheck whether a pattern takes more than linear time on some text. */
export async function judgePattern(pattern: string): Promise<Verdict> {
  const end = pattern.lastIndexOf('/');
  const found = await check(pattern.slice(1, end), pattern.slice(end + 1), { timeout: 20_000 });
  if (found.status !== 'vulnerable') return { status: found.status };
  const { pumps, suffix } = found.attack;
  return {
    status: found.status,
    attack: { pumps: pumps.map(({ prefix, pump }) => ({ prefix, pump })), suffix },
  };
}

// `node test/house/judge-patterns.ts` judges every pattern again, in half a minute, and writes the file.
if (import.meta.main) {
  const judged: [string, Verdict][] = [];
  for (const pattern of [...collectPatterns().patterns.keys()].sort()) {
    judged.push([pattern, await judgePattern(pattern)]);
  }
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(judged), null, 2)}\n`);
}
