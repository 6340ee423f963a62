import assert from 'node:assert/strict';
import { checksumAddress } from '../../../engine/signing/ethereum/signer.ts';
import type { Incentives, VaultRates } from '../../../ports/chains.ts';
import type { VaultChange, VaultPlan } from './evm/contracts/vaults.ts';
import type { EvmState } from './evm/state.ts';
import type { Block } from './pool.ts';
import type { ChainStore } from './store.ts';
import type { Simulated } from './world.ts';

/*
 * SIMULATED incentives: the distributor of rewards is simulated and pays the rewards that `POST
 * /_sandbox/earn/rewards` adds, against Merkle proofs. PRODUCTION: rewards come from Merkl, as far as the root of the
 * distributor proves them. SETTING: `--reward-distributor` for chains with `--rpc`; `CUSTOS_REWARD_DISTRIBUTORS` for
 * `custos serve`.
 *
 * SIMULATED vaultRates: the yield of a vault is the rate that the sandbox was set to, and accrues by the sandbox's
 * clock. PRODUCTION: the yield is null. SETTING: none.
 */

/** A vault to add. Addresses may have any letter case. */
type NewSimulatedVault = Omit<VaultPlan, 'address'> & { readonly name: string };

/** Simulates vaults and rewards on EVM chains, and lets testers control them. */
export interface SimulatedEarn extends Incentives, VaultRates {
  addVault(caip2: string, vault: NewSimulatedVault): Promise<string>;
  /** Plans a vault. It is deployed when the chain is first used. */
  planVault(caip2: string, plan: VaultPlan): void;
  /**
   * Changes a vault. If more liquidity is requested than the vault could pay out, changes nothing and returns the
   * maximum. Otherwise returns undefined.
   */
  changeVault(caip2: string, address: string, change: VaultChange): Promise<bigint | undefined>;
  /** Adds a reward. Returns false if the account's total would exceed what the distributor can count. */
  addReward(caip2: string, reward: NewReward): Promise<boolean>;
}

interface NewReward {
  readonly address: string;
  readonly tokenAddress: string;
  readonly rawAmount: bigint;
  readonly decimals: number;
  readonly symbol: string;
}

/** How many times a change of a vault is attempted while other changes of its state interfere. */
const MAX_ATTEMPTS = 20;

interface EarnParts {
  /** The planned vaults, by chain and lower-case address. */
  readonly planned: Map<string, VaultPlan>;
  open(): Promise<ChainStore>;
  chain(caip2: string): Promise<Simulated>;
  /** Returns whether a chain is an EVM chain. */
  has(caip2: string): boolean;
}

type Contracts = Awaited<ReturnType<typeof loadContracts>>;

async function loadContracts() {
  const [vaults, rewards, addresses] = await Promise.all([
    import('./evm/contracts/vaults.ts'),
    import('./evm/contracts/rewards.ts'),
    import('./evm/contracts/addresses.ts'),
  ]);
  return { vaults, rewards, addresses };
}

export function simulateEarn({ open, chain, has, planned }: EarnParts): SimulatedEarn {
  const evmOf = async (caip2: string) => {
    const { evm } = await chain(caip2);
    assert(evm, `expected an EVM chain, got \`${caip2}\``);
    return evm;
  };
  const atHead = async <T>(
    caip2: string,
    work: (state: EvmState, block: Block, contracts: Contracts) => T,
  ): Promise<T> => {
    const [{ state, blocks }, store, contracts] = await Promise.all([evmOf(caip2), open(), loadContracts()]);
    return store.atomically(() => work(state, blocks.head(), contracts));
  };
  return {
    addVault: (caip2, { name, ...plan }) =>
      atHead(caip2, (state, block, { vaults }) => {
        const address = vaults.vaultAddress(state, name);
        const addresses = { address, asset: lower(plan.asset), admin: lower(plan.admin) };
        vaults.deployVault(state, block, { ...plan, ...addresses });
        return checksumAddress(address.slice(2));
      }),
    planVault(caip2, plan) {
      const address = lower(plan.address);
      const addresses = { address, asset: lower(plan.asset), admin: lower(plan.admin) };
      planned.set(`${caip2} ${address}`, { ...plan, ...addresses });
    },
    async changeVault(caip2, address, change) {
      const [{ state, blocks, interpreter }, store, { vaults }] = await Promise.all([
        ...[evmOf(caip2), open(), loadContracts()],
      ] as const);
      // Try again if a transaction has changed what was read while the interpreter was running.
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const order = { block: blocks.head(), address: lower(address), change };
        const prepared = await vaults.changeVault(await interpreter(), state, order);
        if ('most' in prepared) return prepared.most;
        if (store.atomically(() => prepared.store())) return undefined;
      }
      throw new Error(`the vault \`${address}\` changed ${MAX_ATTEMPTS} times during its own change`);
    },
    rateOf: async (caip2, address) =>
      has(caip2) ? atHead(caip2, (state, _, { vaults }) => vaults.ratesOf(state, lower(address))) : undefined,
    addReward: (caip2, { address, tokenAddress, rawAmount, ...token }) =>
      atHead(caip2, (state, block, { rewards }) => {
        const reward = { user: lower(address), token: lower(tokenAddress), amount: rawAmount };
        if (rewards.isTooMuch(state, reward)) return false;
        rewards.addReward(state, block, { ...reward, ...token });
        return true;
      }),
    rewards: async (caip2, address) =>
      has(caip2)
        ? atHead(caip2, (state, _, { rewards, addresses }) => ({
            distributor: checksumAddress(addresses.DISTRIBUTOR_ADDRESS.slice(2)),
            rewards: rewards
              .provenRewards(state, lower(address))
              .map(({ token, amount, claimed, proof }) => ({
                tokenAddress: checksumAddress(token.slice(2)),
                ...(state.accounts.token(token) ?? { symbol: 'TOKEN', decimals: 18 }),
                ...{ rawCumulative: amount, rawClaimed: claimed, proof },
              })),
          }))
        : undefined,
  };
}

function lower(address: string): string {
  return address.toLowerCase();
}
