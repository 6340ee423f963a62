import { expect, test } from 'vitest';
import type { Wallet } from '../../src/generated/schemas.ts';
import { figureSize, noteFigure } from '../figures/figure.ts';
import { type ServingCustos, serveCustos, temporaryFolder } from '../support/run-custos.ts';

// The process is killed during its work, repeatedly, on the same folder.
const kills = figureSize({ short: 4, long: 100 });
const clients = 4;

interface Acknowledged {
  readonly id: string;
  readonly address: string;
  readonly key: string;
}

/** Creates wallets, each with its own idempotency key, until the server is killed. */
async function makeWallets(
  custos: ServingCustos,
  name: string,
  acknowledged: Acknowledged[],
  tried: Set<string>,
) {
  for (let count = 0; ; count += 1) {
    const key = `${name}-${count}`;
    tried.add(key);
    try {
      const body = { chain_type: 'ethereum', external_id: key };
      const answer = await custos.call<Wallet>('POST', '/v1/wallets', body, {
        'service-idempotency-key': key,
      });
      if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${answer.text}`);
      acknowledged.push({ id: answer.body.id, address: answer.body.address, key });
    } catch (error) {
      if (custos.process.exitCode === null && custos.process.signalCode === null && !custos.process.killed)
        throw error;
      return;
    }
  }
}

test(`${kills} kills during requests lose nothing acknowledged and leave nothing half done`, async () => {
  const data = temporaryFolder();
  const acknowledged: Acknowledged[] = [];
  const tried = new Set<string>();
  for (let kill = 0; kill < kills; kill += 1) {
    const custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
    const work = Array.from({ length: clients }, (_, client) =>
      makeWallets(custos, `kill-${kill}-${client}`, acknowledged, tried),
    );
    await new Promise((resolve) => setTimeout(resolve, 150 + 37 * (kill % 7)));
    await custos.stop('SIGKILL');
    await Promise.all(work);
  }
  expect(acknowledged.length).toBeGreaterThan(kills * clients);

  await using custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
  for (const { id, address, key } of acknowledged) {
    const { status, body } = await custos.call<Wallet>('GET', `/v1/wallets/ext_wal_${key}`);
    expect({ status, id: body.id, address: body.address }).toEqual({ status: 200, id, address });
  }
  // An unacknowledged wallet exists completely, with a working key, or not at all; a retry creates it exactly once.
  const known = new Set(acknowledged.map(({ key }) => key));
  for (const key of [...tried].filter((name) => !known.has(name))) {
    const before = await custos.call<Wallet>('GET', `/v1/wallets/ext_wal_${key}`);
    const body = { chain_type: 'ethereum', external_id: key };
    const retry = await custos.call<Wallet>('POST', '/v1/wallets', body, { 'service-idempotency-key': key });
    expect(retry.status).toBe(200);
    if (before.status === 200) expect(retry.body.id).toBe(before.body.id);
    const signed = await custos.call('POST', `/v1/wallets/${retry.body.id}/rpc`, {
      method: 'personal_sign',
      params: { message: 'still here', encoding: 'utf-8' },
    });
    expect(signed.status).toBe(200);
  }
  noteFigure({
    kills,
    requests: tried.size,
    acknowledged: acknowledged.length,
  });
}, 7_200_000);
