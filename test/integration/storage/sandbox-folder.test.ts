import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { request } from 'undici';
import { beforeEach, describe, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { startErrorOf } from '../../../src/adapters/sandbox-folder.ts';
import { banner } from '../../../src/cli/banner.ts';
import { readSandboxConfig } from '../../../src/config/config.ts';
import { StartError } from '../../../src/config/start-error.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox } from '../../support/sandbox.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

const start = (more: Parameters<typeof startSandbox>[0] = {}) =>
  startSandbox({ dataFolder: folder, seedData: false, seed: undefined, ...more });
const stateFile = () => join(folder, 'sandbox.json');
const readState = () => JSON.parse(readFileSync(stateFile(), 'utf8')) as Record<string, unknown>;

/** Why a start is refused, in words. */
async function refusalOf(starting: Promise<{ close(): Promise<void> }>): Promise<string> {
  const error = await starting.then(
    (sandbox) => sandbox.close().then(() => new Error('it started')),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StartError);
  return (error as Error).message;
}

/** A folder that was in use: one wallet in its database. */
async function useFolder(): Promise<string> {
  await using sandbox = await start();
  return (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body.id;
}

/** The id of the first wallet that is created after a start. */
async function firstIdOf(more: Parameters<typeof startSandbox>[0]): Promise<string> {
  await using sandbox = await start(more);
  return (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body.id;
}

test('a folder has one sandbox at a time', async () => {
  {
    await using _sandbox = await start();
    expect(await refusalOf(start())).toBe(
      `another sandbox (process ${process.pid}) uses \`${folder}\`; stop it, or choose another folder with --data`,
    );
    expect(readState().starts).toBe(1);
  }
  await useFolder();
  expect(readState().starts).toBe(2);
});

test('a start whose port is taken changes nothing: the ids of the seed stay those of the first start', async () => {
  await using taken = createServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as AddressInfo;
  const seeded = { seed: 'demo', seedData: true };
  for (const ports of [{ port }, { adminPort: port }]) {
    await expect(start({ ...seeded, ...ports })).rejects.toMatchObject({ code: 'EADDRINUSE', port });
    expect(readdirSync(folder)).not.toContain('sandbox.json');
  }
  const first = await firstIdOf({ ...seeded, dataFolder: temporaryFolder() });
  expect(await firstIdOf(seeded)).toBe(first);
  await expect(start({ ...seeded, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(readState().starts).toBe(1);
});

test('what was planned by a clock that was ahead is done after a restart', async () => {
  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  let action_id: string;
  {
    await using sandbox = await start({ seedData: true });
    const { address } = (await call(sandbox, 'getWallet', { path })).body;
    await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    sandbox.clock.set(Date.UTC(2046, 0, 1));
    const body = {
      source: { asset: 'eth', chain: 'base', amount: '0.1' },
      destination: { address },
    } as const;
    action_id = (await call(sandbox, 'transferFromWallet', { path, body })).body.id;
  }
  await using sandbox = await start();
  // The chain takes up the new time when it is first asked.
  await sandbox.settle();
  sandbox.clock.advance(60_000);
  await sandbox.settle();
  const { body } = await call(sandbox, 'getWalletAction', { path: { ...path, action_id } });
  expect(body.status).toBe('succeeded');
});

describe('the master key stays', () => {
  test.each([
    ['renamed', { masterKey: 'ab'.repeat(32) }, '`masterKeyHex` to be 64 hexadecimal digits'],
    ['cut off', { masterKeyHex: 'ab' }, '`masterKeyHex` to be 64 hexadecimal digits'],
    ['without its app', { appId: undefined }, '`appId` to be the id of an app'],
    ['with another type', { starts: 'three' }, '`starts` to be the number of starts'],
  ])('the master key stays where the state is %s', async (_what, change, expected) => {
    await useFolder();
    const { masterKeyHex, ...rest } = readState();
    const kept = 'masterKey' in change ? rest : { masterKeyHex, ...rest };
    const text = JSON.stringify({ ...kept, ...change });
    writeFileSync(stateFile(), text);
    expect(await refusalOf(start())).toBe(`\`${stateFile()}\` cannot be read: expected ${expected}`);
    expect(readFileSync(stateFile(), 'utf8')).toBe(text);
  });

  test.each(['', '{', 'null', '[]'])('the master key stays where the state is `%s`', async (text) => {
    await useFolder();
    writeFileSync(stateFile(), text);
    expect(await refusalOf(start())).toContain(`\`${stateFile()}\` cannot be read`);
    expect(readFileSync(stateFile(), 'utf8')).toBe(text);
  });

  test('the master key stays where the state has the key of another folder', async () => {
    const id = await useFolder();
    const right = readFileSync(stateFile(), 'utf8');
    const wrong = JSON.stringify({ ...readState(), masterKeyHex: 'ab'.repeat(32) });
    writeFileSync(stateFile(), wrong);
    expect(await refusalOf(start())).toContain('restore its `sandbox.json`');
    expect(readFileSync(stateFile(), 'utf8')).toBe(wrong);
    writeFileSync(stateFile(), right);
    await using sandbox = await start();
    expect((await call(sandbox, 'getWallet', { path: { wallet_id: id } })).status).toBe(200);
  });

  test('where the state is missing: none is made for a database that is there', async () => {
    await useFolder();
    rmSync(stateFile());
    expect(await refusalOf(start())).toContain('restore its `sandbox.json`');
    expect(readdirSync(folder)).not.toContain('sandbox.json');
  });
});

describe('a folder that cannot be used is refused with advice', () => {
  test('a folder that cannot be used is refused with advice whose database file is damaged', async () => {
    await useFolder();
    writeFileSync(join(folder, 'custos.sqlite'), 'a letter to grandmother'.repeat(500));
    rmSync(join(folder, 'custos.sqlite-wal'), { force: true });
    const message = await refusalOf(start());
    expect(message).toContain(
      `the data folder \`${folder}\` cannot be used: a file in it is not a database; restore the file from a backup, or choose another folder with --data`,
    );
    expect(readState().starts).toBe(1);
  });

  test('whose state cannot be written, and nothing is left over', async () => {
    await useFolder();
    rmSync(stateFile());
    rmSync(join(folder, 'custos.sqlite'));
    mkdirSync(join(folder, 'sandbox.json'));
    expect(await refusalOf(start())).toContain('cannot be read');
    const left = readdirSync(folder).filter((name) => /^sandbox\.json\./.test(name));
    expect(left).toEqual([]);
  });

  test('a data folder that is a file is refused', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    for (const dataFolder of [file, join(file, 'data')]) {
      expect(await refusalOf(start({ dataFolder }))).toContain('it is not a folder');
    }
  });

  // The system answers there that the folder above does not exist.
  test.skipIf(process.platform !== 'linux')(
    'a folder that cannot be used is refused with advice where nothing can be created',
    async () => {
      expect(await refusalOf(start({ dataFolder: '/proc/custos/data' }))).toContain(
        'the data folder `/proc/custos/data` cannot be used: a file or folder is missing',
      );
    },
  );

  test.each([
    ['ENOSPC', 'the disk is full; make space'],
    ['EROFS', 'it is read-only; make it writable'],
    ['EACCES', 'no permission; give this user access'],
    ['SQLITE_FULL', 'the disk is full; make space'],
    ['SQLITE_READONLY_DIRECTORY', 'a database in it is read-only; make it writable'],
    ['SQLITE_IOERR_WRITE', 'a database in it cannot be read or written; check the disk'],
  ])('a folder that cannot be used is refused with advice for %s', (code, advice) => {
    const cause = Object.assign(new Error('from below'), { code, syscall: 'write' });
    for (const error of [cause, new Error('wrapped by the ORM', { cause })]) {
      expect(startErrorOf('/data', error)).toEqual(
        new StartError(
          `the data folder \`/data\` cannot be used: ${advice}, or choose another folder with --data (from below)`,
        ),
      );
    }
  });

  test('and not blamed for what has another reason', () => {
    const port = Object.assign(new Error('listen EACCES'), { code: 'EACCES', syscall: 'listen' });
    const bug = new TypeError('undefined is not a function');
    expect([startErrorOf('/data', port), startErrorOf('/data', bug)]).toEqual([port, bug]);
  });
});

describe('a sandbox that other machines reach', () => {
  test('a sandbox that other machines reach has a secret of its own, says so, and keeps it', async () => {
    let secret: string;
    {
      await using open = await start({ host: '0.0.0.0' });
      secret = open.appSecret;
      expect(secret).not.toBe(acmeApp.secret);
      expect(secret.length).toBeGreaterThan(40);
      const config = { ...readSandboxConfig({ host: '0.0.0.0' }), dataFolder: folder };
      expect(await banner(open, config)).toContain(
        'random; set one with --app-secret. Other machines can reach 0.0.0.0: keep the secret to yourself',
      );
      await expect(
        call({ ...open, appSecret: acmeApp.secret }, 'listWallets', { query: {} }),
      ).rejects.toThrow('401');
      await call(open, 'listWallets', { query: {} });
    }
    await using again = await start({ host: '0.0.0.0' });
    expect(again.appSecret).toBe(secret);
  });

  test('draws it although its folder had the published one, and under a seed', async () => {
    await useFolder();
    expect(readState().appSecret).toBe(acmeApp.secret);
    await using open = await start({ host: '0.0.0.0', seed: 'demo' });
    expect(open.appSecret).not.toBe(acmeApp.secret);
    await expect(call({ ...open, appSecret: acmeApp.secret }, 'listWallets', { query: {} })).rejects.toThrow(
      '401',
    );
  });

  test('a sandbox that other machines reach takes the one that it is given', async () => {
    await using open = await start({ host: '0.0.0.0', appSecret: 'a-secret-of-our-own' });
    expect(open.appSecret).toBe('a-secret-of-our-own');
    const config = { ...readSandboxConfig({ host: '0.0.0.0', appSecret: 'a-secret-of-our-own' }) };
    expect(await banner(open, config)).toContain('set with --app-secret. Other machines can reach 0.0.0.0');
  });

  test('a sandbox that other machines reach is announced under the URL that they call', async () => {
    const flags = { host: '0.0.0.0', publicUrl: ['https://sandbox.acme.test:4010/'] };
    await using open = await start(flags);
    const text = await banner(open, readSandboxConfig(flags));
    const port = new URL(open.baseUrl).port;
    expect(text).toContain(
      `https://sandbox.acme.test:4010\n${' '.repeat(14)}https://127.0.0.1:${port} on this`,
    );
    expect(text).toContain('https://sandbox.acme.test:4010/docs\n');
    expect(text).toContain('  https://sandbox.acme.test:4010/v1/wallets -d');
  });

  test('and one that they do not reach has the published secret', async () => {
    await using closed = await start();
    expect(closed.appSecret).toBe(acmeApp.secret);
    expect(await banner(closed, readSandboxConfig({}))).not.toContain('Other machines');
  });
});

describe('host and origin of requests to a sandbox on loopback', () => {
  const ask = async (sandbox: Awaited<ReturnType<typeof start>>, headers: Record<string, string>) => {
    const { statusCode, body } = await request(`${sandbox.baseUrl.replace('https:', 'http:')}/v1/wallets`, {
      method: 'GET',
      headers: {
        authorization: `Basic ${Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64')}`,
        'service-app-id': sandbox.appId,
        ...headers,
      },
    });
    await body.dump();
    return statusCode;
  };

  test('honest clients are let in, pages of other sites are not', async () => {
    await using sandbox = await start({
      dataFolder: undefined,
      plainHttp: true,
      publicUrls: ['https://wallets.acme.test:8443'],
    });
    for (const host of ['localhost', '127.0.0.1:4010', '[::1]:4010', 'LOCALHOST:1', 'wallets.acme.test']) {
      expect({ host, status: await ask(sandbox, { host }) }).toEqual({ host, status: 200 });
    }
    for (const origin of ['http://localhost:3000', 'https://127.0.0.1:5173', 'https://wallets.acme.test']) {
      expect({ origin, status: await ask(sandbox, { origin }) }).toEqual({ origin, status: 200 });
    }
    for (const host of [
      'evil.example',
      '127.0.0.1.evil.example',
      'localhost.evil.example:4010',
      '192.168.1.7',
    ]) {
      expect({ host, status: await ask(sandbox, { host }) }).toEqual({ host, status: 403 });
    }
    for (const origin of ['https://evil.example', 'http://evil.example:3000', 'null', 'file://']) {
      expect({ origin, status: await ask(sandbox, { origin }) }).toEqual({ origin, status: 403 });
    }
  });

  test('any host is let in where other machines are', async () => {
    await using sandbox = await start({ dataFolder: undefined, plainHttp: true, host: '0.0.0.0' });
    expect(await ask(sandbox, { host: 'custos.internal:4010', origin: 'https://app.example' })).toBe(200);
  });
});
