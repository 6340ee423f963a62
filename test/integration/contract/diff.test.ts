import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { runCommand } from '../../support/run-custos.ts';

const contract = join(import.meta.dirname, '..', '..', '..', 'openapi', 'openapi.json');
const document = JSON.parse(readFileSync(contract, 'utf8'));
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-diff-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const diff = (...args: string[]) => runCommand(['contract', 'diff', ...args]);

test('a removed error code breaks clients; JSON and YAML are the same', async () => {
  const changed = structuredClone(document);
  delete changed.paths['/v1/wallets'].post.responses['400'].content['application/json'].examples.invalid_data;
  // What only the old document has, so that the published one is the new one.
  const old = structuredClone(document);
  old.webhooks['wallet.painted'] = old.webhooks['wallet.archived'];

  const removed = await diff(
    contract,
    write('new.yaml', stringify(changed, { aliasDuplicateObjects: false })),
  );
  expect(removed.stdout).toContain('createWallet 400: `invalid_data` was removed');
  expect(removed).toMatchObject({ code: 1, stderr: '' });
  const events = await diff(write('old.json', JSON.stringify(old)), '--format', 'json');
  expect(events.code).toBe(1);
  expect(JSON.parse(events.stdout)).toEqual({
    changes: [
      { severity: 'breaking', rule: 'event-removed', place: 'event wallet.painted', message: 'was removed' },
    ],
  });
});

test('the contract has not changed from itself', async () => {
  const sarif = join(folder, 'diff.sarif');
  expect(await diff(contract, contract, '--format', `sarif=${sarif}`, '--format', 'text')).toEqual({
    code: 0,
    stdout: '0 breaking, 0 compatible, 0 text\n',
    stderr: '',
  });
  expect(JSON.parse(readFileSync(sarif, 'utf8')).runs[0].results).toEqual([]);
});

test('what cannot be compared has its own exit code', async () => {
  const others: [string, RegExp][] = [
    [join(folder, 'absent.json'), /cannot be read/],
    [write('bad.json', '{'), /expected JSON or YAML/],
    [write('old2.yaml', 'swagger: "2.0"\n'), /expected an OpenAPI 3 document, got `openapi: undefined`/],
    [
      write('parts.yaml', 'openapi: 3.1.0\npaths: {/a: {$ref: "other.yaml"}}\n'),
      /expected one document, got a reference to `other.yaml`; bundle it first/,
    ],
  ];
  for (const [path, message] of others) {
    const { code, stderr } = await diff(path, contract);
    expect(code).toBe(3);
    expect(stderr).toMatch(message);
  }
  expect((await diff()).code).toBe(2);
  expect((await diff(contract, contract, '--format', 'pdf')).code).toBe(2);
});
