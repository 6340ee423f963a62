import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nameFollower } from '../../../codegen/divergences/follow-names.ts';
import { simulatedIn } from '../../../codegen/divergences/read-simulated.ts';

const files: Readonly<Record<string, string>> = {
  'src/handler.ts': `
    import { pay } from './pay.ts';
    import type { Unused } from './unused.ts';
    export const run = (input: Unused, context) => pay(context);
  `,
  'src/pay.ts': `
    import { ways } from './ways.ts';
    export function pay(context) { return ways[context.kind](context); }
    export function other({ prices }: Pick<Services, 'prices'>) { return prices; }
  `,
  'src/ways.ts': `
    const fast = (context) => context.chains.find('a');
    export const ways = { fast };
  `,
  'src/unused.ts': 'export const unused = ({ custodians }) => custodians;',
};

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'names-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
});
afterAll(() => rmSync(root, { recursive: true }));

const wanted = new Map([
  ['chains', /context/],
  ['prices', /context/],
  ['custodians', /context/],
]);

test('a handler reaches what the functions in its tables do, and not what other functions of their files do', () => {
  const { places, members } = nameFollower(root, wanted).from(['src/handler.ts#run']);
  expect([...places]).toEqual([
    'src/handler.ts#run',
    'src/pay.ts#pay',
    'src/ways.ts#ways',
    'src/ways.ts#fast',
  ]);
  expect([...members]).toEqual(['chains']);
});

test('a member is found in a pattern, and not on other objects', () => {
  const follower = nameFollower(root, wanted);
  expect([...follower.from(['src/pay.ts#other']).members]).toEqual(['prices']);
  const elsewhere = nameFollower(root, new Map([['chains', /services/]]));
  expect([...elsewhere.from(['src/handler.ts#run']).members]).toEqual([]);
});

test('a comment may describe two parts, and must be complete', () => {
  const comment = `/*
 * SIMULATED prices: they are
 * fixed. PRODUCTION: none.
 * SETTING: none.
 *
 * SIMULATED chains: a ledger.
 * PRODUCTION: nodes.
 * SETTING: \`--rpc\`.
 */`;
  expect(simulatedIn('a.ts', comment)).toEqual([
    { name: 'prices', sandbox: 'they are fixed.', production: 'none.', setting: null, path: 'a.ts' },
    { name: 'chains', sandbox: 'a ledger.', production: 'nodes.', setting: '`--rpc`.', path: 'a.ts' },
  ]);
  expect(() => simulatedIn('a.ts', '/* SIMULATED prices: they are fixed. */')).toThrow(/PRODUCTION/);
});
