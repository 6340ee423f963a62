import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { recoverMessageAddress } from 'viem/utils';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { claimSocket } from '../../../src/keys/serve-signer.ts';
import { openSignerKeyStore, type SignerKeyStore } from '../../../src/keys/signer-client.ts';
import { connectToSocket } from '../../../src/keys/signer-connection.ts';
import { type StartedCustos, startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

// `custos signer --socket`: a signer with a life of its own, to which servers connect.

const folder = join(temporaryFolder(), 'signer');
const path = join(folder, 'socket');
const uid = process.getuid!();
const env = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };

async function startSigner(): Promise<StartedCustos> {
  const signer = await startCustos(['signer', '--socket', path], { env });
  await waitFor(() => signer.output().stdout.includes('"ready"') || signer.process.exitCode !== null);
  return signer;
}

let signer: StartedCustos;
let signing: SignerKeyStore;
let server: TestOperations;
beforeAll(async () => {
  mkdirSync(folder, { mode: 0o700 });
  signer = await startSigner();
  signing = await openSignerKeyStore(() => connectToSocket({ path, uid }), { log: silentLog });
  server = await openOperations('sqlite', { replaceKeyStore: () => signing.keyStore });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await signing?.close();
  await signer.stop('SIGKILL');
});

async function expectSigns({ id, address }: { id: string; address: string }): Promise<void> {
  const body = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  const answer = await server.run('walletRpc', { path: { wallet_id: id }, body });
  const { signature } = (answer.body as { data: { signature: `0x${string}` } }).data;
  expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(address);
}

async function newWallet(): Promise<{ id: string; address: string }> {
  const { body } = await server.run('createWallet', { body: { chain_type: 'ethereum' } });
  return body as { id: string; address: string };
}

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'wallets sign, also after the signer ended by %s and was started again',
  async (signal) => {
    const wallet = await newWallet();
    await expectSigns(wallet);
    await signer.stop(signal);
    await expect(newWallet()).rejects.toSatisfy(isUnavailable);
    await expect(signing.check()).rejects.toThrow('is being restarted');
    signer = await startSigner();
    while (
      !(await signing.check().then(
        () => true,
        () => false,
      ))
    )
      await pause(20);
    await expectSigns(wallet);
    await expectSigns(await newWallet());
  },
);

test('a socket that others could replace or use is refused, by the signer and by the server', async () => {
  await expect(connectToSocket({ path, uid: uid + 1 }).stream).rejects.toThrow('as its owner');
  await expect(connectToSocket({ path: join(folder, 'none'), uid }).stream).rejects.toThrow(
    'no signer listens',
  );
  chmodSync(folder, 0o755);
  try {
    await expect(connectToSocket({ path, uid }).stream).rejects.toThrow('expected mode 700');
    const second = { path: join(folder, 'second'), isForGroup: false };
    await expect(claimSocket(second)).rejects.toThrow('expected mode 700, got 755');
  } finally {
    chmodSync(folder, 0o700);
  }
});
