import { type Hex, parseEther, toHex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isLong } from '../../figures/figure.ts';
import { callOf, type Sent } from '../../support/evm/cases.ts';
import { comparable } from '../../support/evm/comparable.ts';
import { alice, bob, carol, type Known, knownTransactions } from '../../support/evm/known-transactions.ts';
import { bothSee } from '../../support/evm/look.ts';
import { BASE_FEE, CHAIN_ID, openPair, type Pair } from '../../support/evm/pair.ts';

// Transactions of the kinds that are sent most on Ethereum, on a simulated chain and on anvil: tokens, permits, swaps,
// proxies, factories, faults, limits, every type. Everything that both nodes say of them is equal.

let pair: Pair;
beforeAll(async () => {
  pair = await openPair();
  for (const node of [pair.here, pair.there]) {
    const balance = toHex(parseEther('1000'));
    await node(...[alice, bob].map(({ address }) => ['anvil_setBalance', address, balance] as const));
  }
});
afterAll(() => pair[Symbol.asyncDispose]());

async function signed(known: Known, nonce: number): Promise<Sent> {
  const {
    from,
    name: _,
    isEstimated: __,
    type = 'eip1559',
    maxPriorityFeePerGas = 0n,
    accessList = [],
    ...fields
  } = known;
  const price =
    type === 'legacy' || type === 'eip2930'
      ? { gasPrice: 2n * BASE_FEE }
      : { maxFeePerGas: 2n * BASE_FEE, maxPriorityFeePerGas };
  const all = { value: 0n, ...fields, ...(type === 'legacy' ? {} : { accessList }) };
  const bytes = await from.signTransaction({ type, chainId: CHAIN_ID, nonce, ...all, ...price } as never);
  return {
    ...{ signed: bytes, accessList: accessList as Sent['accessList'] },
    signers: [bob, carol].map(({ address }) => address.toLowerCase() as Hex),
    call: callOf(from.address, all),
  };
}

test(
  '200 transactions have equal results, receipts, traces and effects',
  async () => {
    const all = await knownTransactions();
    expect(all.length).toBeGreaterThanOrEqual(200);
    const nonces = new Map<string, number>();
    // An estimate runs a transaction several times, so `npm test` compares every sixteenth one.
    const every = isLong ? 1 : 16;
    for (const [index, known] of all.entries()) {
      const { name, from, to } = known;
      const nonce = nonces.get(from.address) ?? 0;
      nonces.set(from.address, nonce + 1);
      const one = {
        ...{ accounts: [], isEstimated: index % every === 0 && known.isEstimated !== false },
        watched: [from.address, ...(to === undefined ? [] : [to])],
        transactions: [await signed(known, nonce)],
      };
      const { seen, withEstimate } = await bothSee(pair, one);
      for (const [subject, [ours, theirs]] of Object.entries(comparable(one, seen))) {
        expect({ name, subject, is: ours }).toEqual({ name, subject, is: theirs });
      }
      const [estimate] = seen[0].estimates;
      if (estimate === undefined) continue;
      // The transaction succeeds with the gas that we estimate, or it fails with any.
      if ('result' in estimate)
        expect({ name, withEstimate }).toMatchObject({ withEstimate: [{ result: /^0x/ }, {}] });
      else expect({ name, theirs: seen[1].estimates[0] }).toHaveProperty('theirs.error');
    }
  },
  isLong ? 3_600_000 : 300_000,
);

test('transactions that no block can include are refused in the words of geth', async () => {
  const { address } = carol;
  for (const node of [pair.here, pair.there]) {
    await node(['anvil_setBalance', address, toHex(10n ** 16n)], ['anvil_setNonce', address, '0x3']);
  }
  const sign = (fields: object): Promise<Hex> =>
    carol.signTransaction({
      ...{ type: 'eip1559', chainId: CHAIN_ID, nonce: 3, gas: 21_000n, to: bob.address },
      ...{ maxFeePerGas: BASE_FEE, maxPriorityFeePerGas: 0n, ...fields },
    } as never);
  // Source: go-ethereum, core/error.go. Anvil refuses them too, in words of its own.
  const refused: [fields: object, message: RegExp][] = [
    [{ nonce: 2 }, /^nonce too low/],
    [{ value: 10n ** 17n }, /^insufficient funds for gas \* price \+ value/],
    [{ gas: 20_999n }, /^intrinsic gas too low/],
    [{ gas: 16_777_217n }, /^transaction gas limit too high/],
    [{ chainId: CHAIN_ID + 1 }, /^invalid chain id/],
    [{ to: undefined, data: `0x${'00'.repeat(49_153)}`, gas: 5_000_000n }, /^max initcode size exceeded/],
  ];
  for (const [fields, message] of refused) {
    const signed = await sign(fields);
    const [here, there] = await Promise.all(
      [pair.here, pair.there].map((node) => node(['eth_sendRawTransaction', signed])),
    );
    expect({ fields, here: here![0] }).toMatchObject({
      here: { error: { code: -32_000, message: expect.stringMatching(message) } },
    });
    expect({ fields, there: there![0] }).toHaveProperty('there.error');
  }
});
