import { hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { once } from '../../../../../engine/load-once.ts';
import { BATCH_EXECUTOR_ADDRESS } from '../../../../../engine/signing/ethereum/batch-executor.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../../engine/signing/ethereum/smart-accounts.ts';
import { rawAmountWorth } from '../../../exchange/rates.ts';
import { fixedUsd } from '../../../prices.ts';
import { NATIVE } from '../../ledger.ts';
import { hasNativeAsset, PAYMASTER_ADDRESS } from '../../sponsors.ts';
import type { EvmState } from '../state.ts';
import { entryPoints } from '../user-operations/events.ts';
import {
  DISTRIBUTOR_ADDRESS,
  PAIR_FACTORY_ADDRESS,
  pairAddress,
  SWAP_ROUTER_ADDRESS,
  sortTokens,
  wrappedNativeOn,
} from './addresses.ts';
import { solidity } from './generated/solidity.ts';
import { addressWord, elementSlot, memberSlot, wordOf } from './storage-layout.ts';
import { balanceSlot, SUPPLY_SLOT, tokenWords } from './token-storage.ts';
import { type Holding, tokensOn } from './tokens.ts';

/* The contracts that a chain begins with. They are stored only after a change, so a new sandbox writes nothing. */

/*
 * SIMULATED swapRoutes: swaps on one EVM chain go through a router with the interface of Uniswap V2 and its pools.
 * PRODUCTION: swaps go through the routers that the operator names; 400 `not_supported` on chains without one.
 * SETTING: `--rpc` with `--swap-router`; `CUSTOS_SWAP_ROUTERS` for `custos serve`.
 */

/** The value of each token in a pair, in US dollars. */
const SIDE_USD = 1_000_000n;

const NO_ADDRESS = `0x${'0'.repeat(40)}`;
const MULTICALL_ADDRESS = '0xca11bde05977b3631167028862be2a173976ca11';

/**
 * A contract through which anyone can deploy contracts with CREATE2. Source:
 * github.com/Arachnid/deterministic-deployment-proxy (MIT).
 */
const CREATE2_DEPLOYER_ADDRESS = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const CREATE2_DEPLOYER_CODE = `7f${'ff'.repeat(31)}e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3`;

/**
 * The STOP opcode, which is the code of the entry point, its paymaster, and the implementation to which smart wallets
 * delegate. They accept every call and do nothing, because the bundler runs the operations.
 */
const PASSIVE_CODE = '00';

interface GenesisAccount {
  readonly code: Uint8Array;
  readonly words: ReadonlyMap<string, string>;
}

/** A pair of tokens in the order of their addresses, with the initial reserve of each. */
interface PlannedPair {
  readonly address: string;
  readonly tokens: readonly [string, string];
  readonly reserves: readonly [bigint, bigint];
}

/** The initial state of a chain. Addresses are lower-case 0x hex. */
export interface Genesis {
  account(address: string): GenesisAccount | undefined;
  /**
   * Returns the native asset that backs the wrapped native asset. Undefined if the sandbox did not add a wrapped one.
   */
  native(): Holding | undefined;
  /** Returns the tokens in the pairs, and the native asset that backs the wrapped native asset. */
  allocations(): readonly Holding[];
  pairs(): readonly PlannedPair[];
}

type Chain = Pick<EvmState, 'world' | 'caip2' | 'chainId' | 'upstream'>;

export function genesisOf(chain: Chain): Genesis {
  if (chain.upstream !== undefined) return continuedGenesis();
  const pairs = once(() => pairsOn(chain));
  const wrapped = hasNativeAsset(chain) ? wrappedNativeOn(chain.caip2) : undefined;
  const allocations = once(() => allocationsOf(pairs(), wrapped));
  const accounts = once(() => accountsOf(chain, { pairs: pairs(), allocations: allocations(), wrapped }));
  return {
    account: (address) => accounts().get(address),
    native: () => allocations().find(({ asset }) => asset === NATIVE),
    ...{ allocations, pairs },
  };
}

/**
 * Returns the state that the sandbox adds to a chain that forks a real one. Everything else comes from the real
 * chain.
 */
function continuedGenesis(): Genesis {
  const accounts = new Map(
    accountsOfWallets().map(([address, code]) => [address, { code, words: new Map<string, string>() }]),
  );
  return {
    account: (address) => accounts.get(address),
    native: () => undefined,
    allocations: () => [],
    pairs: () => [],
  };
}

/** Returns the contracts whose code the smart accounts of wallets run. */
function accountsOfWallets(): [address: string, code: Uint8Array][] {
  const passive = hexToBytes(PASSIVE_CODE);
  return [
    [BATCH_EXECUTOR_ADDRESS, codeOf('BatchExecutor')],
    [SIMPLE_ACCOUNT_ADDRESS, passive],
    [ENTRY_POINT_ADDRESS, passive],
    [PAYMASTER_ADDRESS, passive],
  ];
}

/**
 * Returns the pairs with which a chain begins.
 *
 * CHOICE: every two tokens that have a price and a name on a chain have a pair, with $1,000,000 of each token at the
 * fixed prices.
 */
function pairsOn(chain: Parameters<typeof tokensOn>[0]): readonly PlannedPair[] {
  const priced = tokensOn(chain).flatMap(({ address, pricedAs, ...terms }) => {
    const price = fixedUsd(pricedAs);
    return price === undefined ? [] : [{ address, reserve: rawAmountWorth(SIDE_USD, { ...terms, price }) }];
  });
  const reserves = new Map(priced.map(({ address, reserve }) => [address, reserve]));
  const addresses = [...reserves.keys()];
  return addresses.flatMap((one, index) =>
    addresses.slice(index + 1).map((other) => {
      const tokens = sortTokens(one, other);
      const [first, second] = tokens;
      return {
        ...{ address: pairAddress(one, other), tokens },
        reserves: [reserves.get(first)!, reserves.get(second)!] as const,
      };
    }),
  );
}

function sum(allocations: readonly Holding[]): bigint {
  return allocations.reduce((total, { amount }) => total + amount, 0n);
}

function allocationsOf(pairs: readonly PlannedPair[], wrapped: string | undefined): Holding[] {
  const inPairs = pairs.flatMap(({ address, tokens, reserves }) =>
    tokens.map((asset, index) => ({ owner: address, asset, amount: reserves[index]! })),
  );
  if (wrapped === undefined) return inPairs;
  // INVARIANT: the wrapped native asset is backed by an equal amount of the native asset.
  const backing = sum(inPairs.filter(({ asset }) => asset === wrapped));
  return [...inPairs, { owner: wrapped, asset: NATIVE, amount: backing }];
}

function accountsOf(
  chain: Chain,
  {
    pairs,
    allocations,
    wrapped,
  }: {
    pairs: readonly PlannedPair[];
    allocations: readonly Holding[];
    wrapped: string | undefined;
  },
): ReadonlyMap<string, GenesisAccount> {
  const accounts = new Map<string, GenesisAccount>();
  const add = (address: string, code: Uint8Array, words: Iterable<readonly [string, string]> = []): void =>
    void accounts.set(address, { code, words: new Map(words) });
  for (const [address, code] of accountsOfWallets()) add(address, code);
  for (const address of entryPoints.keys()) add(address, hexToBytes(PASSIVE_CODE));
  add(MULTICALL_ADDRESS, codeOf('Multicall3'));
  add(DISTRIBUTOR_ADDRESS, codeOf('Distributor'));
  add(CREATE2_DEPLOYER_ADDRESS, hexToBytes(CREATE2_DEPLOYER_CODE));
  const router = solidity.Router.slots;
  add(SWAP_ROUTER_ADDRESS, codeOf('Router'), [
    [wordOf(router.factory), addressWord(PAIR_FACTORY_ADDRESS)],
    [wordOf(router.WETH), addressWord(wrapped ?? NO_ADDRESS)],
  ]);
  add(PAIR_FACTORY_ADDRESS, codeOf('Factory'), factoryWords(pairs));
  for (const { address, ...terms } of tokensOn(chain)) {
    const held = allocations.filter(({ asset }) => asset === address);
    add(address, codeOf(address === wrapped ? 'WrappedNative' : 'Token'), [
      ...tokenWords(terms),
      [SUPPLY_SLOT, wordOf(sum(held))],
      ...held.map(({ owner, amount }) => [balanceSlot(owner), wordOf(amount)] as const),
    ]);
  }
  for (const pair of pairs) add(pair.address, codeOf('Pair'), pairWords(pair));
  return accounts;
}

function factoryWords(pairs: readonly PlannedPair[]): [string, string][] {
  const { slots } = solidity.Factory;
  const [known, all] = [wordOf(slots.getPair), wordOf(slots.allPairs)];
  return [
    [all, wordOf(pairs.length)],
    ...pairs.flatMap(({ address, tokens: [one, other] }, index): [string, string][] => {
      const word = addressWord(address);
      return [
        [elementSlot(all, index), word],
        [memberSlot(memberSlot(known, addressWord(one)), addressWord(other)), word],
        [memberSlot(memberSlot(known, addressWord(other)), addressWord(one)), word],
      ];
    }),
  ];
}

function pairWords({ tokens, reserves: [first, second] }: PlannedPair): [string, string][] {
  const { slots } = solidity.Pair;
  // The shares of this liquidity belong to address 0, so no one can withdraw it.
  const liquidity = wordOf(squareRoot(first * second));
  return [
    ...tokenWords({ decimals: 18, symbol: 'UNI-V2' }),
    [wordOf(slots.factory), addressWord(PAIR_FACTORY_ADDRESS)],
    [wordOf(slots.token0), addressWord(tokens[0])],
    [wordOf(slots.token1), addressWord(tokens[1])],
    [wordOf(slots.reserve0), reservesWord([first, second])],
    [SUPPLY_SLOT, liquidity],
    [balanceSlot(NO_ADDRESS), liquidity],
  ];
}

/**
 * Returns the word that contains both reserves of a pair and, in its top bits, the time of the last trade, which is
 * initially zero.
 */
export function reservesWord([first, second]: readonly [bigint, bigint]): string {
  return wordOf((second << 112n) | first);
}

function squareRoot(value: bigint): bigint {
  let [root, next] = [value, (value + 1n) / 2n];
  while (next < root) [root, next] = [next, (next + value / next) / 2n];
  return root;
}

const codes = new Map<string, Uint8Array>();

/** Returns a contract's code. It is the same array each time, so that its hash is computed only once. */
export function codeOf(contract: keyof typeof solidity): Uint8Array {
  const code = codes.get(contract) ?? hexToBytes(solidity[contract].code);
  codes.set(contract, code);
  return code;
}
