import fc from 'fast-check';
import { encodeFunctionData, erc20Abi, hexToBytes } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { makeIds, systemEntropy } from '../../src/adapters/runtime.ts';
import type { IssuedCard } from '../../src/ports/cards.ts';
import type { EvmChain } from '../../src/ports/chains.ts';
import type { CardControls } from '../../src/sandbox/simulated/cards/issuers.ts';
import { openSimulatedChains } from '../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../src/sandbox/simulated/prices.ts';

// Random walks of approvals, payments and everything that can become of them, against a model of a few lines: after each
// step the wallet, the allowance and the issuer hold what the model says, to the unit.
const runs = process.env.TEST_LONG === '1' ? 2_000 : 12;

const environment = 'sandbox';
const caip2 = 'eip155:84532';
const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const CENT = 10_000n;

const cents = fc.integer({ min: 1, max: 4_000 }).map(BigInt);
const step = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('approve' as const), cents }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fund' as const), cents }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('authorize' as const), cents, at: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('capture' as const), cents, at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('capture all' as const), at: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reverse' as const), at: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('refund' as const), cents, at: fc.nat(), name: fc.nat(3) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('status' as const),
      status: fc.constantFrom('active' as const, 'inactive' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), days: fc.constantFrom(1, 5) }) },
);

interface ModelPayment {
  readonly id: string;
  readonly sinceMs: number;
  status: 'pending' | 'posted' | 'reversed' | 'expired';
  cents: bigint;
  refunded: bigint;
}

const DAY_MS = 86_400_000;

test('payments move money between wallet and issuer, and neither make nor lose any', async () => {
  const clock = { nowMs: Date.UTC(2026, 0, 1) };
  const chains = openSimulatedChains({
    ...{ file: ':memory:', clock: { now: () => clock.nowMs }, confirmAfterMs: 0 },
    knownTokens: () => [{ caip2, address: usdc, symbol: 'USDC', decimals: 6 }],
  });
  const office = {
    ...{ ids: makeIds(systemEntropy), prices: fixedPrices, supports: chains.has },
    ...{ pageOf: (token: string) => token, environments: [environment] as const },
  };
  const { providers, controls: fiat } = chains.fiat(office);
  const { issuers, controls } = chains.cards({ ...office, secret: () => Buffer.alloc(32, 1) });
  const [provider, issuer] = [providers.find('bridge', environment)!, issuers.find(environment)!];
  const customer = await provider.openCustomer({
    ...{ id: undefined, kind: 'person', reference: 'alice', email: 'alice@example.com' },
    endorsements: [issuer.endorsement],
  });
  if ('fault' in customer) throw new Error(customer.message);
  await fiat.decide(environment, customer.id, { outcome: 'approved' });
  const { spenderAddress } = await issuer.program();
  const chain = chains.find(caip2) as EvmChain;
  let walks = 0;

  const read = async (functionName: 'allowance', owner: `0x${string}`): Promise<bigint> => {
    const args = [owner, spenderAddress as `0x${string}`] as const;
    const data = hexToBytes(encodeFunctionData({ abi: erc20Abi, functionName, args }));
    return BigInt(`0x${Buffer.from((await chain.read({ to: usdc, data }))!).toString('hex')}`);
  };

  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        walks += 1;
        // What the walk before left pending goes back to its wallet first.
        clock.nowMs += 8 * DAY_MS;
        await issuer.payments('', { cursor: undefined, limit: 1 });
        const owner = privateKeyToAccount(generatePrivateKey());
        const { address } = owner;
        const give = (tokenAddress: string | null, rawAmount: bigint) =>
          chains.fund(caip2, { address, tokenAddress, rawAmount });
        await give(null, 10n ** 18n);
        const issued = (await issuer.issue({
          ...{ key: `walk ${walks}`, customerId: customer.id, caip2 },
          ...{ tokenAddress: usdc, decimals: 6, address },
        })) as IssuedCard;
        const issuerBefore = (await chain.balances(spenderAddress, [usdc]))[0]!;

        const model = { wallet: 0n, allowance: 0n, given: 0n, status: 'active', nonce: 0 };
        const payments: ModelPayment[] = [];
        const byReference = new Map<string, string>();
        const refunds = new Map<string, ModelPayment>();
        const at = (index: number) => payments[index % payments.length];
        const spent = () =>
          payments
            .filter(({ status, sinceMs }) => isLive(status) && sinceMs > clock.nowMs - DAY_MS)
            .reduce((sum, payment) => sum + payment.cents, 0n);
        const take = (amount: bigint): boolean => {
          if (amount > model.allowance || amount > model.wallet) return false;
          model.allowance -= amount;
          model.wallet -= amount;
          return true;
        };

        for (const one of steps) {
          if (one.kind === 'approve') {
            const data = encodeFunctionData({
              ...{ abi: erc20Abi, functionName: 'approve' },
              args: [spenderAddress as `0x${string}`, one.cents * CENT],
            });
            const signed = await owner.signTransaction({
              ...{ chainId: 84532, nonce: model.nonce, to: usdc, data, gas: 100_000n },
              ...{ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n },
            });
            await chain.broadcast(hexToBytes(signed));
            await chains.mine(caip2, 1);
            model.nonce += 1;
            model.allowance = one.cents;
          } else if (one.kind === 'fund') {
            await give(usdc, one.cents * CENT);
            model.wallet += one.cents;
            model.given += one.cents;
          } else if (one.kind === 'authorize') {
            const reference = `order ${one.at}`;
            const paid = await controls.authorize(environment, {
              ...{ cardId: issued.id, cents: one.cents, merchant: 'Shop', reference, isDeclined: false },
            });
            const known = byReference.get(reference);
            if (known !== undefined) expect(paid!.id).toBe(known);
            else {
              byReference.set(reference, paid!.id);
              const isAllowed = model.status === 'active' && spent() + one.cents <= 1_000_000n;
              const isPaid = isAllowed && take(one.cents);
              expect(paid!.status).toBe(isPaid ? 'pending' : 'declined');
              const fresh = { status: 'pending' as const, cents: one.cents, refunded: 0n };
              if (isPaid) payments.push({ ...fresh, id: paid!.id, sinceMs: clock.nowMs });
            }
          } else if (one.kind === 'status') {
            await issuer.change(issued.id, { status: one.status });
            model.status = one.status;
          } else if (one.kind === 'wait') {
            clock.nowMs += one.days * DAY_MS;
            await issuer.payments(issued.id, { cursor: undefined, limit: 1 });
            for (const payment of payments) {
              if (payment.status !== 'pending' || payment.sinceMs + 7 * DAY_MS > clock.nowMs) continue;
              payment.status = 'expired';
              model.wallet += payment.cents;
            }
          } else {
            const payment = at(one.at);
            if (payment !== undefined) await change(controls, { one, payment, model, take, refunds });
          }
          const live = payments.filter(({ status }) => isLive(status));
          const holds = live.reduce((sum, payment) => sum + payment.cents - payment.refunded, 0n);
          expect((await chain.balances(address, [usdc]))[0]).toBe(model.wallet * CENT);
          expect(await read('allowance', address)).toBe(model.allowance * CENT);
          expect((await chain.balances(spenderAddress, [usdc]))[0]! - issuerBefore).toBe(holds * CENT);
          expect(model.wallet + holds).toBe(model.given);
        }
        const posted = await issuer.posted(issued.id, { fromMs: 0, beforeMs: clock.nowMs + 1, limit: 100 });
        const total = posted.reduce(
          (sum, { kind, cents: paid }) => sum + (kind === 'refund' ? -paid : paid),
          0n,
        );
        const kept = payments.filter(({ status }) => status === 'posted');
        expect(total).toBe(kept.reduce((sum, payment) => sum + payment.cents - payment.refunded, 0n));
      }),
      { numRuns: runs, ...(runs > 100 ? {} : { seed: 7 }) },
    );
  } finally {
    await chains.close();
  }
});

function isLive(status: ModelPayment['status']): boolean {
  return status === 'pending' || status === 'posted';
}

type Change = Extract<
  typeof step extends fc.Arbitrary<infer Step> ? Step : never,
  { kind: 'capture' | 'capture all' | 'reverse' | 'refund' }
>;

async function change(
  controls: CardControls,
  {
    one,
    payment,
    model,
    take,
    refunds,
  }: {
    one: Change;
    payment: ModelPayment;
    model: { wallet: bigint };
    take: (amount: bigint) => boolean;
    refunds: Map<string, ModelPayment>;
  },
): Promise<void> {
  if (one.kind === 'reverse') {
    const done = await controls.release(payment.id, 'reversed');
    if (payment.status === 'pending') {
      payment.status = 'reversed';
      model.wallet += payment.cents;
    }
    expect(typeof done === 'object').toBe(payment.status === 'reversed');
    return;
  }
  if (one.kind === 'refund') {
    const reference = `refund ${one.name}`;
    const done = await controls.refund(payment.id, { cents: one.cents, reference });
    const known = refunds.get(reference);
    if (known !== undefined) {
      expect(typeof done === 'object').toBe(known === payment);
      return;
    }
    const left = payment.cents - payment.refunded;
    const isRefunded = payment.status === 'posted' && one.cents <= left;
    expect(typeof done === 'object').toBe(isRefunded);
    if (!isRefunded) return;
    refunds.set(reference, payment);
    payment.refunded += one.cents;
    model.wallet += one.cents;
    return;
  }
  const wanted = one.kind === 'capture' ? one.cents : payment.cents;
  const done = await controls.capture(payment.id, one.kind === 'capture' ? wanted : undefined);
  if (payment.status !== 'pending') {
    expect(typeof done === 'object').toBe(payment.status === 'posted' && wanted === payment.cents);
    return;
  }
  const isWithin = wanted * 5n <= payment.cents * 6n;
  const isCaptured = isWithin && (wanted <= payment.cents || take(wanted - payment.cents));
  expect(typeof done === 'object').toBe(isCaptured);
  if (!isCaptured) return;
  if (wanted < payment.cents) model.wallet += payment.cents - wanted;
  payment.cents = wanted;
  payment.status = 'posted';
}
