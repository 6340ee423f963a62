import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { databaseOf } from '../../../src/adapters/sandbox-folder.ts';
import { releaseChanges } from '../../../src/admin/restored.ts';
import { backUpFolder, restoreFolder } from '../../../src/compose/backups.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { startScriptedNode } from '../../support/scripted-node.ts';

const start = (dataFolder: string, options: Parameters<typeof startSandbox>[0] = {}): Promise<TestSandbox> =>
  startSandbox({ dataFolder, ...options });
const createWallet = (sandbox: TestSandbox) =>
  call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } }) as Promise<{
    status: number;
    body: Wallet;
  }>;
const sign = (sandbox: TestSandbox, walletId: string) =>
  call(sandbox, 'walletRpc', {
    path: { wallet_id: walletId },
    body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
  });

test('a backup of a running sandbox has everything acknowledged before it, and its keys sign', async () => {
  const [folder, parent] = [temporaryFolder(), temporaryFolder()];
  const backups = [1, 2, 3].map((number) => join(parent, `backup-${number}`));
  const before: Wallet[][] = [];
  {
    await using sandbox = await start(folder);
    const made: Wallet[] = [];
    let isDone = false;
    const work = (async () => {
      while (!isDone) made.push((await createWallet(sandbox)).body);
    })();
    for (const backup of backups) {
      await expect.poll(() => made.length, { timeout: 60_000 }).toBeGreaterThan(3 * (before.length + 1));
      before.push([...made]);
      await backUpFolder(folder, backup);
    }
    isDone = true;
    await work;
  }
  for (const [index, backup] of backups.entries()) {
    const restored = join(parent, `restored-${index}`);
    expect(await restoreFolder(backup, restored, { replaces: false })).toMatchObject({ replaced: undefined });
    await using sandbox = await start(restored);
    for (const { id, address } of before[index]!) {
      expect(await call(sandbox, 'getWallet', { path: { wallet_id: id } })).toMatchObject({
        status: 200,
        body: { id, address },
      });
    }
    expect(await sign(sandbox, before[index]!.at(-1)!.id)).toMatchObject({ status: 200 });
  }
});

test('the simulated chains are backed up with the database', async () => {
  const [folder, parent] = [temporaryFolder(), temporaryFolder()];
  let paid: { id: string };
  {
    await using sandbox = await start(folder);
    const { body: wallet } = await createWallet(sandbox);
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    const sent = await call(sandbox, 'walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        method: 'eth_sendTransaction',
        caip2: 'eip155:8453',
        params: { transaction: { to: '0x52908400098527886E0F7030069857D2E4169EE7', value: '0x1' } },
      },
    });
    paid = { id: (sent.body as { data: { transaction_id: string } }).data.transaction_id };
    await backUpFolder(folder, join(parent, 'backup'));
  }
  await restoreFolder(join(parent, 'backup'), join(parent, 'restored'), { replaces: false });
  await using sandbox = await start(join(parent, 'restored'));
  await sandbox.settle();
  expect(await call(sandbox, 'getTransaction', { path: { transaction_id: paid.id } })).toMatchObject({
    status: 200,
    body: { status: expect.stringMatching(/confirmed|finalized|broadcasted/) },
  });
});

test('a restored sandbox whose chain is a node holds its changes until they are released', async () => {
  await using node = await startScriptedNode((method) =>
    method === 'eth_chainId' ? { result: '0x1' } : { error: { code: -32601, message: 'method not found' } },
  );
  const [folder, parent] = [temporaryFolder(), temporaryFolder()];
  await (await start(folder)).close();
  await backUpFolder(folder, join(parent, 'backup'));
  const restored = join(parent, 'restored');
  await restoreFolder(join(parent, 'backup'), restored, { replaces: false });
  await using sandbox = await start(restored, { rpc: [{ caip2: 'eip155:1', urls: [node.url] }] });
  expect(await refusal(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).toMatchObject({
    status: 503,
    body: { error: expect.stringContaining('custos restored release') },
  });
  await releaseChanges({ kind: 'folder', folder: restored }, false);
  const status = () =>
    createWallet(sandbox).then(
      ({ status: is }) => is,
      () => 503,
    );
  await expect.poll(status, { timeout: 60_000 }).toBe(200);
});

test('a restore replaces nothing by itself, and keeps what it replaces', async () => {
  const [folder, parent] = [temporaryFolder(), temporaryFolder()];
  const backup = join(parent, 'backup');
  const sandbox = await start(folder);
  await backUpFolder(folder, backup);
  await expect(backUpFolder(folder, backup)).rejects.toThrow('exists; choose a new folder');
  await expect(backUpFolder(parent, join(parent, 'other'))).rejects.toThrow('expected the data folder');
  await expect(restoreFolder(backup, folder, { replaces: false })).rejects.toThrow('is not empty');
  await expect(restoreFolder(backup, folder, { replaces: true })).rejects.toThrow(
    `a sandbox (process ${process.pid}) uses`,
  );
  await sandbox.close();
  const state = readFileSync(join(folder, 'sandbox.json'), 'utf8');
  const { replaced } = await restoreFolder(backup, folder, { replaces: true });
  expect(readFileSync(join(replaced!, 'sandbox.json'), 'utf8')).toBe(state);
  await (await start(folder)).close();
});

test('a backup that is damaged, incomplete or of a newer version is refused, and nothing is written', async () => {
  const [folder, parent] = [temporaryFolder(), temporaryFolder()];
  await (await start(folder)).close();
  const target = join(parent, 'target');
  const spoiled = async (name: string, spoil: (backup: string) => void): Promise<string> => {
    const backup = join(parent, name);
    await backUpFolder(folder, backup);
    spoil(backup);
    return restoreFolder(backup, target, { replaces: false }).then(
      () => 'restored',
      (error: Error) => error.message,
    );
  };
  expect(await spoiled('changed', (backup) => appendFileSync(join(backup, 'sandbox.json'), ' '))).toMatch(
    /sandbox.json` differs from what was backed up/,
  );
  expect(await spoiled('no-manifest', (backup) => writeFileSync(join(backup, 'backup.json'), '{'))).toMatch(
    /is not JSON/,
  );
  const manifest = (backup: string, change: (text: string) => string): void => {
    const file = join(backup, 'backup.json');
    writeFileSync(file, change(readFileSync(file, 'utf8')));
  };
  expect(
    await spoiled('outside', (backup) => manifest(backup, (text) => text.replace('sandbox.json', '../x'))),
  ).toMatch(/names `\.\.\/x`/);
  // A folder that was changed before it was backed up.
  const database = new Sqlite(databaseOf(folder));
  database.pragma('user_version = 900');
  database.close();
  expect(await spoiled('newer', () => undefined)).toMatch(/is at version 900 of the schema/);
  expect(existsSync(target)).toBe(false);
  expect(readdirSync(parent).filter((name) => name.startsWith('target'))).toEqual([]);
});

test('the commands back up, restore and report', async () => {
  const [folder, parent] = [temporaryFolder(), temporaryFolder()];
  await (await start(folder)).close();
  const [backup, restored] = [join(parent, 'backup'), join(parent, 'restored')];
  expect(await runCommand(['backup', backup, '--data', folder])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+ files, \d+ bytes\n$/),
  });
  expect(await runCommand(['restore', backup, '--data', folder])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('replace it with --replace'),
  });
  const made = await runCommand(['restore', backup, '--data', restored, '--json']);
  expect(JSON.parse(made.stdout)).toMatchObject({ replaced: null, made_at: expect.any(String) });
  const report = await runCommand(['restored', 'report', '--data', restored]);
  expect(report.stdout).toMatch(/^restored {5}marked, noticed .*\nnewest .*\nchanges {6}held\n/);
  expect(await runCommand(['restored', 'accept', '--data', restored])).toMatchObject({ code: 2 });
  expect(await runCommand(['restored', 'accept', 'wallet', '--data', restored])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('expected an account such as `eip155:1:0x52…`, got `wallet`'),
  });
  expect(await runCommand(['restored', 'release', '--deliveries', 'skip', '--data', restored])).toMatchObject(
    {
      code: 0,
      stdout: 'changes are released\n',
    },
  );
  expect(await runCommand(['restored', 'release', '--data', restored])).toMatchObject({ code: 1 });
  expect(await runCommand(['restored', 'mark', '--data', restored])).toMatchObject({
    code: 0,
    stdout: 'changes are held\n',
  });
});
