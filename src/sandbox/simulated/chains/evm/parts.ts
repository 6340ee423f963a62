import { loadOnce } from '../../../../engine/load-once.ts';
import { type Blocks, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { makeContractAccounts, makeLedger, NATIVE } from '../ledger.ts';
import { type Block, makePool, type Pool } from '../pool.ts';
import type { ChainStore } from '../store.ts';
import { recordDeposit, registerToken, type World } from '../world.ts';
import { beginningOf } from './beginning.ts';
import { makeContractState } from './contracts/contract-state.ts';
import { codeOf, genesisOf } from './contracts/genesis.ts';
import { convertOlderState } from './contracts/older-state.ts';
import { tokenAllowances, tokenWords, withTokens } from './contracts/token-storage.ts';
import { deployVault, ratesOf } from './contracts/vaults.ts';
import { type Forks, makeForks } from './forks.ts';
import type { Interpreter } from './interpreter.ts';
import { makeEvmMachine } from './machine.ts';
import type { EvmPlan } from './plan.ts';
import { storeReceipt, transferLog } from './receipts.ts';
import { type EvmState, hashOf, storedBytecode } from './state.ts';
import { settled, type Upstream, UpstreamUnavailableError } from './upstream.ts';

/** The components of one simulated EVM chain. */
export interface EvmParts {
  readonly world: World;
  readonly caip2: string;
  readonly state: EvmState;
  readonly pool: Pool<EvmPlan>;
  readonly blocks: Blocks;
  readonly forks: Forks;
  /** Registers a listener that is called before the first transaction of each block. */
  readonly onBlock: (listener: (number: number) => void) => void;
  readonly interpreter: () => Promise<Interpreter>;
  /** Migrates a chain's stored state to this version. */
  prepare(): void;
  /** Processes due blocks, then runs `work` in one transaction of the store. */
  atHead<T>(work: () => T): Promise<T>;
}

/**
 * Creates the components of a chain.
 *
 * @param upstream the real chain that this chain forks.
 */
export function makeEvmParts(world: World, caip2: string, upstream?: Upstream): EvmParts {
  const { store, clock, confirmAfterMs } = world;
  const terms = termsOf(caip2);
  const state = makeEvmState(world, caip2, upstream);
  const forks = makeForks(store, caip2, upstream);
  const listeners: ((number: number) => void)[] = [];
  const pool = makePool<EvmPlan>(store, caip2, world.drawFault);
  // Loaded for the first execution, because a chain that only keeps balances needs no interpreter.
  const interpreter = loadOnce(async () => {
    const { makeInterpreter } = await import('./interpreter.ts');
    return makeInterpreter(state.chainId, { forks, abis: await world.abis(), upstream });
  });
  const machine = makeEvmMachine(state, pool, interpreter);
  const begin = (block: Block): void => {
    if (upstream === undefined) deployPlanned(state, block);
    else state.contracts.set(FORK, 'block', upstream.block);
  };
  const made = makeBlocks({
    ...{ store, caip2, terms, clock, confirmAfterMs, pool, machine, begin },
    firstHeight: upstream && upstream.block + 1,
    onBlock: (number) => {
      for (const listener of listeners) listener(number);
    },
    onAbandoned: forks.replace,
  });
  const { catchUp, atHead, exclusively, mine } = made;
  // Each method is retried by itself, so that a caller that has broadcast a transaction does not broadcast it again.
  const blocks =
    upstream === undefined ? made : { ...made, ...settled({ catchUp, atHead, exclusively, mine }) };
  const parts: EvmParts = {
    ...{ world, caip2, state, pool, blocks, forks, interpreter, atHead: blocks.atHead },
    onBlock: (listener) => void listeners.push(listener),
    prepare() {
      if (store.first('select 1 from chains where caip2 = ?', caip2) === undefined) return;
      requireSameFork(state);
      if (upstream !== undefined) return;
      store.atomically(() => {
        convertOlderState(state);
        deployPlanned(state, blocks.head());
      });
    },
  };
  parts.prepare();
  return parts;
}

/** The key in `contracts` of the block at which a chain forks a real one. */
const FORK = 'fork';

/** Returns the block at which the stored chain forks a real one, or undefined if it does not. */
export function forkBlockOf(store: ChainStore, caip2: string): number | undefined {
  return makeContractState(store, caip2).get<number>(FORK, 'block');
}

/**
 * Requires that the stored chain forks the configured chain.
 *
 * @throws UpstreamUnavailableError if it forks a different chain, or none.
 */
function requireSameFork({ upstream, contracts, caip2 }: EvmState): void {
  const stored = contracts.get<number>(FORK, 'block');
  if (stored === upstream?.block) return;
  throw new UpstreamUnavailableError(
    stored === undefined
      ? `${caip2} has begun without --fork in this sandbox: reset it, or use another folder`
      : `${caip2} continues a real chain at block ${stored}: start with --fork ${caip2}=<url>@${stored}`,
  );
}

function deployPlanned(state: EvmState, block: Block): void {
  for (const plan of state.world.plannedVaults(state.caip2)) {
    if (ratesOf(state, plan.address) === undefined) deployVault(state, block, plan);
  }
}

/** Opens the stored state of a chain. */
function makeEvmState(world: World, caip2: string, upstream: Upstream | undefined): EvmState {
  const { store } = world;
  const chain = { world, caip2, chainId: BigInt(caip2.slice('eip155:'.length)), upstream };
  const genesis = genesisOf(chain);
  const begun = beginningOf(genesis, upstream);
  const bytecode = storedBytecode(store, caip2, begun);
  const state: EvmState = {
    ...{ ...chain, genesis, bytecode },
    baseFee: termsOf(caip2).baseFee,
    ledger: withTokens(makeLedger(store, caip2, { native: begun.native, counted: genesis.native }), bytecode),
    accounts: { ...makeContractAccounts(store, caip2, begun), ...tokenAllowances(bytecode) },
    contracts: makeContractState(store, caip2),
    registerToken({ address, ...given }) {
      registerToken(world, caip2, { address, ...given, program: null });
      if (bytecode.code(address).length > 0) return;
      bytecode.setCode(address, codeOf('Token'));
      const words = tokenWords(state.accounts.token(address) ?? given);
      for (const [slot, word] of words) bytecode.setWord(address, slot, word);
    },
    recordDeposit(deposit) {
      const hash = recordDeposit(world, caip2, { ...deposit, hashOf });
      const { sender, recipient, asset, block } = deposit;
      const isNativeAsset = asset === NATIVE;
      storeReceipt(state, {
        ...{ hash, block, sender, recipient: isNativeAsset ? recipient : asset, contract: null },
        ...{
          gasUsed: 0n,
          gasPrice: 0n,
          isReverted: false,
          logs: isNativeAsset ? [] : [transferLog(deposit)],
        },
      });
      return hash;
    },
  };
  return state;
}
