import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as keys from '../../../mocks/authorization-keys.ts';
import openapi from '../../../openapi/openapi.json' with { type: 'json' };
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { clientsFolder, languages } from './languages.ts';

// Runs the suite of clients/ (its README has the format) with the client of every language that is installed.
const run = promisify(execFile);
const suite = join(clientsFolder, 'suite');

interface Step {
  readonly operation?: string;
  readonly method?: string;
  readonly path?: string;
}
interface Case {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly expect: object;
}
interface CaseFile {
  readonly offline?: true;
  /** The server of the cases. */
  readonly sandbox?: { readonly prefix?: string; readonly gateway?: true };
  readonly cases: readonly Case[];
}

const files: readonly CaseFile[] = globSync('cases/*.json', { cwd: suite })
  .sort()
  .map((path) => JSON.parse(readFileSync(join(suite, path), 'utf8')));

/** The files with the same server as one: a process of each language for each file takes longer than most cases. */
const groups = new Map<string, CaseFile>();
for (const { cases, ...server } of files) {
  const title = JSON.stringify(server);
  groups.set(title, { ...server, cases: [...(groups.get(title)?.cases ?? []), ...cases] });
}

const folder = temporaryFolder();
cpSync(join(suite, 'world.json'), join(folder, 'world.json'));
mkdirSync(join(folder, 'cases'));
const runs = [...groups].map(([title, file], index) => {
  const path = join(folder, `cases/${index}.json`);
  writeFileSync(path, JSON.stringify(file));
  return { ...file, title, path };
});

const sandboxes = new Map<string, TestSandbox>();
let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway();
  for (const { prefix = 'service' } of [{}, ...files.map(({ sandbox = {} }) => sandbox)]) {
    if (!sandboxes.has(prefix)) {
      sandboxes.set(
        prefix,
        await startSandbox({
          seed: 'clients',
          plainHttp: true,
          ticks: true,
          funds: true,
          hints: true,
          prefix,
        }),
      );
    }
  }
});
afterAll(async () => {
  gateway.stop();
  rmSync(folder, { recursive: true, force: true });
  for (const sandbox of sandboxes.values()) await sandbox[Symbol.asyncDispose]();
});

/** In an expected outcome, `*` is any value. */
function matcherOf(expected: unknown): unknown {
  if (expected === '*') return expect.anything();
  if (Array.isArray(expected)) return expected.map(matcherOf);
  if (typeof expected !== 'object' || expected === null) return expected;
  const members = Object.entries(expected).map(([name, value]) => [name, matcherOf(value)]);
  return expect.objectContaining(Object.fromEntries(members));
}

const lines = new Map<string, ReadonlyMap<string, string>>();

describe.each(languages)('$name', ({ name, missing, build, runner: [command, ...args] }) => {
  let reason: string | undefined;
  beforeAll(async () => {
    reason = await missing();
    if (reason === undefined) await build();
    else process.stderr.write(`the suite of clients/${name} was not run: ${reason}\n`);
  }, 600_000);

  test.each(runs)('the cases with $title', async ({ path, sandbox = {}, cases, title }) => {
    if (reason !== undefined) return;
    const { port } = sandbox.gateway ? gateway : new URL(sandboxes.get(sandbox.prefix ?? 'service')!.baseUrl);
    const { stdout } = await run(command, [...args, `http://127.0.0.1:${port}`, path], {
      timeout: 80_000,
      // Otherwise Node.js loads the ledger.
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const printed = stdout.split('\n').filter((line) => line !== '');
    expect(printed.map((line) => JSON.parse(line))).toEqual(
      cases.map((each) => matcherOf({ ...each.expect, case: each.name })),
    );
    lines.set(title, new Map([...(lines.get(title) ?? []), [name, stdout]]));
  });
});

test('all languages that were run print the same bytes', () => {
  for (const [, outputs] of lines) {
    const [first, ...others] = outputs;
    for (const [name, output] of others) expect(`${name}\n${output}`).toBe(`${name}\n${first![1]}`);
  }
});

test('the cases name operations of the document, with their method and path', () => {
  const described = new Set(
    Object.entries(openapi.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`,
      ),
    ),
  );
  const steps = files.flatMap(({ cases }) => cases.flatMap((each) => each.steps));
  const named = steps.filter(({ operation }) => operation !== undefined);
  const unknown = named.map(({ operation, method, path }) => `${operation} ${method} ${path}`);
  expect(unknown.filter((each) => !described.has(each))).toEqual([]);
  const names = files.flatMap(({ cases }) => cases.map(({ name }) => name));
  expect(new Set(names).size).toBe(names.length);
});

test('the keys of the suite are those of the seed data', () => {
  const world = JSON.parse(readFileSync(join(suite, 'world.json'), 'utf8'));
  const { aliceKey, bobKey, carolKey } = keys;
  expect(world.signers).toEqual({
    alice: aliceKey.privateKey,
    bob: bobKey.privateKey,
    carol: carolKey.privateKey,
  });
});
