import type { PlainChain } from '../../../../ports/chains.ts';
import { type Machine, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { refuse } from '../decode-or-refuse.ts';
import { fundPlain } from '../fund.ts';
import { makeContractAccounts, makeLedger, NATIVE } from '../ledger.ts';
import { makePool } from '../pool.ts';
import { knownToken, type Simulated, transfersAfter, transfersOf, type World } from '../world.ts';

// The number of decimals of the native asset, by namespace.
const nativeDecimals: Readonly<Record<string, number>> = {
  aptos: 8,
  bip122: 8,
  cosmos: 6,
  movement: 8,
  near: 24,
  pearl: 8,
  spark: 0,
  starknet: 18,
  stellar: 7,
  sui: 9,
  ton: 9,
  xrpl: 6,
};
const MAX_AMOUNT = 2n ** 128n - 1n;
// On all these chains, addresses and token names use only printable ASCII without spaces.
const ADDRESS = /^[\x21-\x7e]{1,128}$/;

/** A machine that is never used, because these chains have no transactions. */
const noTransactions: Machine<never> = {
  readiness: () => 'drop',
  execute: async () => () => ({ fee: 0n, failure: undefined, movements: [] }),
  replacementOf: () => null,
};

/**
 * Simulates a chain that has only balances and faucet deposits.
 *
 * CHOICE: no operation broadcasts to these chains, so transactions are not simulated and signed bytes are rejected.
 */
export function simulatePlain(world: World, caip2: string): Simulated<PlainChain> {
  const { store, clock } = world;
  const ledger = makeLedger(store, caip2);
  const tokens = makeContractAccounts(store, caip2);
  const pool = makePool<never>(store, caip2);
  const terms = termsOf(caip2);
  const options = { store, caip2, terms, clock, confirmAfterMs: undefined, pool };
  const blocks = makeBlocks({ ...options, machine: noTransactions });
  const { atHead } = blocks;
  const text = (address: string) => address;
  return {
    chain: {
      kind: 'plain',
      caip2,
      balances: (address, assets) =>
        atHead(() => assets.map((token) => ledger.balance(address, token ?? NATIVE))),
      broadcast: async () => refuse('invalid', `transactions on \`${caip2}\` are not simulated`),
      statusOf: async () => ({ kind: 'unknown', isExpired: false }),
      transfersOf: (query) => atHead(() => transfersOf(world, caip2, { query, text })),
      transfersAfter: (reading) => atHead(() => transfersAfter(world, caip2, { reading, text })),
    },
    ledger,
    decimalsOf: (tokenAddress) =>
      tokenAddress === null
        ? nativeDecimals[caip2.slice(0, caip2.indexOf(':'))]
        : (tokens.token(tokenAddress) ?? knownToken(world, caip2, tokenAddress))?.decimals,
    fund: (deposit) =>
      fundPlain({
        ...{ world, caip2, ledger, block: blocks.head(), deposit },
        ...{ faucet: 'faucet', maxSupply: MAX_AMOUNT, defaultDecimals: 6 },
        isAddress: (address) => ADDRESS.test(address),
      }),
    catchUp: () => blocks.catchUp(),
    head: () => blocks.head(),
    mine: (count) => blocks.mine(count),
  };
}
