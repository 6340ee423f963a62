import { expect, test } from 'vitest';
import type { Transaction, Wallet } from '../../../src/generated/schemas.ts';
import { type ServingCustos, serveCustos, temporaryFolder } from '../../support/run-custos.ts';

// The process is killed between signing and broadcasting, repeatedly, on the same folder.
const kills = process.env.TEST_LONG === undefined ? 2 : 60;
const clients = 3;
/** Acknowledged before each kill; another number each time, so that kills meet other moments. */
const paymentsBefore = (kill: number): number => 5 + 3 * (kill % 7);
const caip2 = 'eip155:8453';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';

interface Acknowledged {
  readonly key: string;
  readonly hash: string;
  readonly id: string;
}

function sendOne(custos: ServingCustos, walletId: string, key: string) {
  const body = {
    method: 'eth_sendTransaction',
    caip2,
    reference_id: key,
    params: { transaction: { to: receiver, value: 1 } },
  };
  return custos.call<{ data: { hash: string; transaction_id: string } }>(
    'POST',
    `/v1/wallets/${walletId}/rpc`,
    body,
    { 'service-idempotency-key': key },
  );
}

/** Sends until the server goes away. */
async function keepSending(
  custos: ServingCustos,
  walletId: string,
  {
    name,
    tried,
    acknowledge,
  }: { name: string; tried: Set<string>; acknowledge: (payment: Acknowledged) => void },
) {
  for (let count = 0; ; count += 1) {
    const key = `${name}-${count}`;
    tried.add(key);
    try {
      const { status, body, text } = await sendOne(custos, walletId, key);
      if (status !== 200) throw new Error(`answered ${status}: ${text}`);
      acknowledge({ key, hash: body.data.hash, id: body.data.transaction_id });
    } catch (error) {
      if (custos.process.exitCode === null && custos.process.signalCode === null && !custos.process.killed)
        throw error;
      return;
    }
  }
}

test(`${kills} kills while sending: everything signed arrives once, and nothing else`, async () => {
  const data = temporaryFolder();
  const acknowledged: Acknowledged[] = [];
  const tried = new Set<string>();
  let walletId = '';
  for (let kill = 0; kill < kills; kill += 1) {
    const custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
    if (kill === 0) {
      const { body } = await custos.call<Wallet>('POST', '/v1/wallets', { chain_type: 'ethereum' });
      walletId = body.id;
      await custos.call('POST', '/_sandbox/faucet', { chain: 'base', address: body.address, amount: '10' });
    }
    const reached = Promise.withResolvers<void>();
    const target = acknowledged.length + paymentsBefore(kill);
    const acknowledge = (payment: Acknowledged): void => {
      acknowledged.push(payment);
      if (acknowledged.length >= target) reached.resolve();
    };
    const work = Array.from({ length: clients }, (_, client) =>
      keepSending(custos, walletId, { name: `${kill}-${client}`, tried, acknowledge }),
    );
    await Promise.race([reached.promise, Promise.all(work)]);
    await custos.stop('SIGKILL');
    await Promise.all(work);
  }
  expect(acknowledged.length).toBeGreaterThan(kills);

  await using custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
  // A retry returns the existing transaction or creates it.
  for (const key of tried) expect((await sendOne(custos, walletId, key)).status).toBe(200);
  const { body: clock } = await custos.call<{ now_ms: number }>('GET', '/_sandbox/clock');
  for (let minute = 1; minute <= 10; minute += 1) {
    await custos.call('PUT', '/_sandbox/clock', { now_ms: clock.now_ms + minute * 60_000, frozen: true });
  }
  const hashes = new Set<string>();
  for (const key of tried) {
    const { body } = await custos.call<{ transactions: Transaction[] }>(
      'GET',
      `/v1/transactions?reference_id=${key}`,
    );
    expect(body.transactions).toEqual([expect.objectContaining({ status: 'finalized' })]);
    hashes.add(body.transactions[0]!.transaction_hash!);
  }
  for (const { hash, id } of acknowledged) {
    const { body } = await custos.call<Transaction>('GET', `/v1/transactions/${id}`);
    expect(body).toMatchObject({ transaction_hash: hash, status: 'finalized' });
  }
  expect(hashes.size).toBe(tried.size);
  // One wei each: the chain itself counts them.
  const funded = await custos.call<{ raw_balance: string }>('POST', '/_sandbox/faucet', {
    chain: 'base',
    address: receiver,
    raw_amount: '1',
  });
  expect(funded.body.raw_balance).toBe(String(tried.size + 1));
}, 600_000);
