import { hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import type { Clock } from '../../../src/ports/runtime.ts';
import { makeAbis } from '../../../src/sandbox/simulated/chains/evm/abis.ts';
import { changeVault, type VaultChange } from '../../../src/sandbox/simulated/chains/evm/contracts/vaults.ts';
import { give } from '../../../src/sandbox/simulated/chains/evm/faucet.ts';
import { BLOCK_GAS_LIMIT, readContract, runEvm } from '../../../src/sandbox/simulated/chains/evm/machine.ts';
import { makeOverlay } from '../../../src/sandbox/simulated/chains/evm/overlay.ts';
import { type EvmParts, makeEvmParts } from '../../../src/sandbox/simulated/chains/evm/parts.ts';
import type { Movement } from '../../../src/sandbox/simulated/chains/ledger.ts';
import { openChainStore } from '../../../src/sandbox/simulated/chains/store.ts';

/** The machine of one simulated EVM chain without blocks and gas: a call happens at the second that it names. */
export interface SimulatedEvm extends Disposable {
  readonly state: EvmParts['state'];
  give(owner: string, asset: string, rawAmount: bigint, decimals?: number): void;
  /** The reason of a revert; undefined when the call succeeds. */
  call(call: { from: string; to: string | null; data: string; value?: bigint; seconds: number }): Promise<{
    readonly revert: string | undefined;
    readonly movements: readonly Movement[];
  }>;
  /** The return data of a program; undefined when it reverts. */
  read(to: string, data: string, seconds: number): Promise<Uint8Array | undefined>;
  /** The most that the vault could pay out, if more is wanted. */
  changeVault(address: string, change: VaultChange, seconds: number): Promise<bigint | undefined>;
}

const clock: Clock = { now: () => 1_800_000_000_000 };

export function simulatedEvm(
  tokens: readonly { address: string; symbol: string; decimals: number }[],
): SimulatedEvm {
  const caip2 = 'eip155:8453';
  const store = openChainStore(':memory:');
  const knownTokens = tokens.map((token) => ({ ...token, caip2 }));
  const world = {
    store,
    clock,
    confirmAfterMs: 0,
    knownTokens: () => knownTokens,
    nativeSymbol: () => 'eth',
    plannedVaults: () => [],
    abis: async () => makeAbis(store),
  };
  const { state, blocks, interpreter } = makeEvmParts(world, caip2);
  blocks.head();
  const blockAt = (seconds: number) => ({ number: seconds, seconds });
  return {
    state,
    give: (owner, asset, rawAmount, decimals = 18) =>
      void give(state, blockAt(0), { owner, asset, rawAmount, decimals, symbol: 'TKN' }),
    async call({ from, to, data, value = 0n, seconds }) {
      const plan = {
        ...{ sender: from, calls: [{ to, value, data }], authorizations: [], accessList: [] },
        ...{ gasLimit: BLOCK_GAS_LIMIT, intrinsicGas: 21_000n, floorGas: 21_000n, sentinel: null },
      };
      const overlay = makeOverlay(state);
      overlay.state.accounts.setNonce(from, '', overlay.state.accounts.nonce(from, '') + 1);
      const options = { gasPrice: 0n, block: blockAt(seconds), isIncluded: true };
      const { revert, movements } = await runEvm(await interpreter(), overlay, plan, options);
      overlay.apply();
      return { revert: revert?.message, movements };
    },
    read: async (to, data, seconds) =>
      readContract(await interpreter(), state, {
        ...{ block: blockAt(seconds), to, data: hexToBytes(data.slice(2)) },
      }),
    async changeVault(address, change, seconds) {
      const order = { block: blockAt(seconds), address, change };
      const prepared = await changeVault(await interpreter(), state, order);
      if ('most' in prepared) return prepared.most;
      if (!prepared.store()) throw new Error('expected nothing else to change the vault');
      return undefined;
    },
    [Symbol.dispose]: () => store.close(),
  };
}
