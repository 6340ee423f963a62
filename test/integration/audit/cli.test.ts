import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call } from '../../support/call.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// `custos audit …` on the folder of a sandbox that is running.

const data = temporaryFolder();
const folder = join(temporaryFolder(), 'audit');
const out = temporaryFolder();
let sandbox: TestSandbox;
let requestId: string;
beforeAll(async () => {
  sandbox = await startSandbox({ dataFolder: data });
  const created = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  requestId = String(created.headers['x-request-id']);
  await sandbox.settle();
});
afterAll(() => sandbox.close());

const audit = (...args: string[]) => runCommand(['audit', ...args]);

test('export prints the key, verify accepts the export, and a changed byte has exit code 1', async () => {
  const exported = await audit('export', folder, '--data', data, '--json');
  expect(exported.code).toBe(0);
  const { size, from, verifier_key: key } = JSON.parse(exported.stdout) as Record<string, string>;
  expect(Number(size)).toBeGreaterThan(0);
  expect(from).toBe(0);
  const verified = await audit('verify', folder, '--key', key!);
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringMatching(`^${size} records verified in `) });
  const unkeyed = await audit('verify', folder);
  expect(unkeyed.stdout).toContain('note: with the key of the export itself; see --key');
  expect(await audit('verify', folder, '--key', 'other+00000000+AAAA')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('expected a verifier key `name+id+key`'),
  });

  const bundle = join(folder, `tile/entries/000.p/${size}`);
  const bytes = readFileSync(bundle);
  writeFileSync(
    bundle,
    Buffer.from(bytes.toString('latin1').replace('"version":1', '"version":2'), 'latin1'),
  );
  const changed = await audit('verify', folder, '--json');
  expect(changed.code).toBe(1);
  expect(JSON.parse(changed.stdout)).toMatchObject({
    faults: ['record 0: it is not the one that was logged'],
  });
  writeFileSync(bundle, bytes);
});

test('prove shows the record of a request with a proof that needs nothing but the key', async () => {
  const { stdout, code } = await audit('prove', folder, requestId, '--json');
  expect(code).toBe(0);
  const [proved] = JSON.parse(stdout) as { index: number; record: string; proof: string }[];
  expect(JSON.parse(proved!.record)).toMatchObject({ operation: 'createWallet', request_id: requestId });
  const files = { proof: join(out, 'it.tlog-proof'), record: join(out, 'it.json') };
  writeFileSync(files.proof, proved!.proof);
  writeFileSync(files.record, proved!.record);
  const key = readFileSync(join(folder, 'log.vkey'), 'utf8').trim();
  const one = ['verify', '--proof', files.proof, '--record', files.record, '--key', key];
  expect(await audit(...one)).toMatchObject({ code: 0, stdout: 'the record is in the log\n' });
  writeFileSync(files.record, proved!.record.replace('createWallet', 'exportWallet'));
  expect(await audit(...one)).toMatchObject({
    code: 1,
    stdout: 'the record is not the one that was logged\n',
  });
  expect(await audit('prove', folder, 'unknown')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the log has no record `unknown`'),
  });
});

test('a witness is compared with: the log that continues it, and one that was cut', async () => {
  const witnessed = join(out, 'checkpoint');
  writeFileSync(witnessed, readFileSync(join(folder, 'checkpoint')));
  await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  await sandbox.settle();
  expect((await audit('export', folder, '--data', data)).code).toBe(0);
  expect((await audit('verify', folder, '--witnessed', witnessed)).code).toBe(0);
  const { stdout } = await audit('prove', folder, '--since', witnessed, '--json');
  expect(JSON.parse(stdout)).toMatchObject({ hashes: expect.any(Array) });
  const newest = readFileSync(join(folder, 'checkpoint'));
  const ahead = join(out, 'ahead');
  writeFileSync(ahead, newest);
  writeFileSync(join(folder, 'checkpoint'), readFileSync(witnessed));
  expect(await audit('verify', folder, '--witnessed', ahead)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('it was truncated'),
  });
  writeFileSync(join(folder, 'checkpoint'), newest);
});

test('trim needs a number of days and keeps younger records', async () => {
  expect((await audit('trim', folder, '--data', data)).code).toBe(2);
  expect((await audit('trim', folder, '--data', data, '--keep-days', '0')).code).toBe(2);
  const trimmed = await audit('trim', folder, '--data', data, '--keep-days', '30', '--json');
  expect(trimmed.code).toBe(0);
  expect(JSON.parse(trimmed.stdout)).toMatchObject({ kept_from: 0 });
});

test('wrong usage has exit code 2', async () => {
  for (const args of [['verify'], ['prove', folder], ['verify', '--proof', 'absent', '--record', 'absent']]) {
    expect((await audit(...args)).code).toBe(2);
  }
  expect(await audit('export', join(out, 'empty'), '--data', temporaryFolder())).toMatchObject({ code: 1 });
});
