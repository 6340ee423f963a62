import assert from 'node:assert/strict';
import { checksumAddress } from '../../../engine/signing/ethereum/signer.ts';
import type { Incentives, VaultRates } from '../../../ports/chains.ts';
import type { VaultChange, VaultPlan } from './evm/programs/deploy-vault.ts';
import type { ProgramView } from './evm/programs/program.ts';
import type { ChainStore } from './store.ts';
import type { Simulated } from './world.ts';

/*
 * SIMULATED incentives: the distributor of rewards is simulated and pays what `POST /_sandbox/earn/rewards`
 * adds, against Merkle proofs.
 * PRODUCTION: rewards are those of Merkl, as far as the root of the distributor proves them.
 * SETTING: `--reward-distributor` for chains with `--rpc`; `CUSTOS_REWARD_DISTRIBUTORS` for `custos serve`.
 *
 * SIMULATED vaultRates: the yield of a vault is what the sandbox was set to, and is earned by its clock.
 * PRODUCTION: the yield is null.
 * SETTING: none.
 */

/** A vault to set up. Addresses in any letter case. */
type NewSimulatedVault = Omit<VaultPlan, 'address'> & { readonly name: string };

/** The vaults and rewards of simulated EVM chains, and the controls for testers. */
export interface SimulatedEarn extends Incentives, VaultRates {
  /** The address of the new vault. */
  addVault(caip2: string, vault: NewSimulatedVault): Promise<string>;
  /** Has a vault put on a chain when it is first used. */
  planVault(caip2: string, plan: VaultPlan): void;
  /** Returns the most that the vault could pay out when more was asked for; nothing changes then. */
  changeVault(caip2: string, address: string, change: VaultChange): Promise<bigint | undefined>;
  /** Returns false when the account would have been given more than the distributor can count. */
  addReward(caip2: string, reward: NewReward): Promise<boolean>;
}

interface NewReward {
  readonly address: string;
  readonly tokenAddress: string;
  readonly rawAmount: bigint;
  readonly decimals: number;
  readonly symbol: string;
}

interface EarnParts {
  /** By chain and lower-case address. */
  readonly planned: Map<string, VaultPlan>;
  open(): Promise<ChainStore>;
  chain(caip2: string): Promise<Simulated>;
  /** Whether it is an EVM chain. */
  has(caip2: string): boolean;
}

type Programs = Awaited<ReturnType<typeof loadPrograms>>;

async function loadPrograms() {
  const [vaults, distributor, addresses] = await Promise.all([
    import('./evm/programs/deploy-vault.ts'),
    import('./evm/programs/distributor.ts'),
    import('./evm/programs/addresses.ts'),
  ]);
  return { vaults, distributor, addresses };
}

export function simulateEarn({ open, chain, has, planned }: EarnParts): SimulatedEarn {
  const atHead = async <T>(caip2: string, work: (view: ProgramView, parts: Programs) => T): Promise<T> => {
    const [{ view }, store, parts] = await Promise.all([chain(caip2), open(), loadPrograms()]);
    assert(view, `expected an EVM chain, got \`${caip2}\``);
    return store.atomically(() => work(view(), parts));
  };
  return {
    addVault: (caip2, { name, ...plan }) =>
      atHead(caip2, (view, { vaults }) => {
        const address = vaults.vaultAddress(view, name);
        vaults.deployVault(view, { ...plan, address, asset: lower(plan.asset), admin: lower(plan.admin) });
        return checksumAddress(address.slice(2));
      }),
    planVault(caip2, plan) {
      const [address, asset, admin] = [plan.address, plan.asset, plan.admin].map(lower) as [
        string,
        string,
        string,
      ];
      planned.set(`${caip2} ${address}`, { ...plan, address, asset, admin });
    },
    changeVault: (caip2, address, change) =>
      atHead(caip2, (view, { vaults }) => vaults.changeVault(view, lower(address), change)),
    rateOf: async (caip2, address) =>
      has(caip2)
        ? atHead(caip2, (view, { vaults }) => {
            const vault = vaults.findVault(view, lower(address));
            return vault && { apyBps: vault.apyBps, feeBps: vault.feeBps };
          })
        : undefined,
    addReward: (caip2, { address, tokenAddress, rawAmount, ...token }) =>
      atHead(caip2, (view, { distributor }) => {
        const reward = { user: lower(address), token: lower(tokenAddress), amount: rawAmount };
        if (distributor.isTooMuch(view, reward)) return false;
        distributor.addReward(view, { ...reward, ...token });
        return true;
      }),
    rewards: async (caip2, address) =>
      has(caip2)
        ? atHead(caip2, (view, { distributor, addresses }) => ({
            distributor: checksumAddress(addresses.DISTRIBUTOR_ADDRESS.slice(2)),
            rewards: distributor
              .provenRewards(view, lower(address))
              .map(({ token, amount, claimed, proof }) => ({
                tokenAddress: checksumAddress(token.slice(2)),
                ...(view.state.accounts.token(token) ?? { symbol: 'TOKEN', decimals: 18 }),
                ...{ rawCumulative: amount, rawClaimed: claimed, proof },
              })),
          }))
        : undefined,
  };
}

function lower(address: string): string {
  return address.toLowerCase();
}
