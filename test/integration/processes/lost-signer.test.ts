import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type StartedCustos, startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { serveWithSigner } from '../../support/signer/serve-with-signer.ts';

// "When the signer is lost" of docs/production.md.

const folder = temporaryFolder();
const place = (name: string): string => {
  mkdirSync(join(folder, name), { mode: 0o700 });
  return join(folder, name);
};
const socket = join(place('run'), 'socket');
const keyFile = join(folder, 'master.key');
writeFileSync(keyFile, randomBytes(32).toString('hex'), { mode: 0o600 });

async function startSigner(state: string): Promise<StartedCustos> {
  const signer = await startCustos(['signer', '--socket', socket, '--state', state], {
    env: { CUSTOS_MASTER_KEY_FILE: keyFile },
  });
  await waitFor(() => signer.output().stdout.includes('"ready"') || signer.process.exitCode !== null);
  expect(signer.process.exitCode, signer.output().stderr).toBe(null);
  return signer;
}

test('a server whose signer is lost serves reads, and signs again with one that is started elsewhere', async () => {
  const state = place('state');
  let signer = await startSigner(state);
  const server = await serveWithSigner({
    settings: {
      ...{ CUSTOS_MASTER_KEY_FILE: undefined, CUSTOS_SIGNER_SOCKET: socket, CUSTOS_ADMIN_PORT: '0' },
    },
  });
  try {
    const admin = /"admin":"([^"]+)".*"ready"/.exec(server.output().stdout)![1]!;
    const readiness = async () => (await fetch(`${admin}/readyz`)).status;
    const made = await server.call('/v1/wallets', { chain_type: 'ethereum' });
    const { id } = made.body as { id: string };
    const sign = () =>
      server.call(`/v1/wallets/${id}/rpc`, {
        ...{ method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
      });
    const signed = await sign();
    expect(signed.status).toBe(200);

    await signer.stop('SIGKILL');
    expect(await server.call(`/v1/wallets/${id}`)).toMatchObject({ status: 200 });
    for (const ask of [sign, () => server.call('/v1/wallets', { chain_type: 'solana' })])
      expect(await ask()).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
    await expect.poll(readiness, { timeout: 30_000 }).toBe(503);

    // What remains is the key and a copy of the state.
    const copy = join(folder, 'copied-state');
    cpSync(state, copy, { recursive: true, filter: (path) => !path.endsWith('/lock') });
    rmSync(state, { recursive: true });
    const startedMs = performance.now();
    signer = await startSigner(copy);
    const listeningMs = performance.now() - startedMs;
    await expect.poll(async () => (await sign()).status, { timeout: 30_000, interval: 20 }).toBe(200);
    const recoveredMs = performance.now() - startedMs;
    expect((await sign()).body).toEqual(signed.body);
    await expect.poll(readiness, { timeout: 30_000 }).toBe(200);
    // The longest pause between two attempts of the server is 5 s. It must not grow to minutes.
    expect(recoveredMs - listeningMs).toBeLessThan(25_000);
    if (process.env.TEST_LONG === '1')
      process.stdout.write(`${JSON.stringify({ listeningMs, recoveredMs })}\n`);
  } finally {
    await signer.stop('SIGKILL');
    await server.end();
  }
});
