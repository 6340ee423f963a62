import { type Blocks, makeBlocks } from '../blocks.ts';
import { termsOf } from '../chain-terms.ts';
import { makeContractAccounts, makeLedger } from '../ledger.ts';
import { makePool, type Pool } from '../pool.ts';
import type { World } from '../world.ts';
import type { EvmState } from './frame.ts';
import { makeEvmMachine } from './machine.ts';
import type { EvmPlan } from './plan.ts';
import { makeContractState } from './programs/contract-state.ts';

/** The components of one simulated EVM chain. */
export interface EvmParts {
  readonly world: World;
  readonly caip2: string;
  readonly state: EvmState;
  readonly pool: Pool<EvmPlan>;
  readonly blocks: Blocks;
  /** Runs `work` in one transaction of the store, after processing due blocks. */
  atHead<T>(work: () => T): Promise<T>;
}

export function makeEvmParts(world: World, caip2: string): EvmParts {
  const { store, clock, confirmAfterMs } = world;
  const terms = termsOf(caip2);
  const state: EvmState = {
    world,
    caip2,
    store,
    chainId: BigInt(caip2.slice('eip155:'.length)),
    baseFee: terms.baseFee,
    ledger: makeLedger(store, caip2),
    accounts: makeContractAccounts(store, caip2),
    contracts: makeContractState(store, caip2),
  };
  const pool = makePool<EvmPlan>(store, caip2, world.drawFault);
  const machine = makeEvmMachine(state, pool);
  const blocks = makeBlocks({ store, caip2, terms, clock, confirmAfterMs, pool, machine });
  const atHead = async <T>(work: () => T): Promise<T> =>
    store.atomically(() => {
      blocks.head();
      return work();
    });
  return { world, caip2, state, pool, blocks, atHead };
}
