import { hasNativeAsset } from '../../sponsors.ts';
import type { EvmState } from '../state.ts';
import {
  DISTRIBUTOR_ADDRESS,
  PAIR_FACTORY_ADDRESS,
  SWAP_ROUTER_ADDRESS,
  wrappedNativeOn,
} from './addresses.ts';
import { distributorProgram } from './distributor.ts';
import { tokensOfPair } from './pools.ts';
import type { Program } from './program.ts';
import {
  pairFactoryProgram,
  pairProgram,
  swapRecipient,
  swapRouterProgram,
  wrappedNativeProgram,
} from './swap-router-program.ts';
import { vaultProgram, vaultRecipient } from './vault-program.ts';
import { VAULT } from './vault-state.ts';

const deployed: ReadonlyMap<string, Program> = new Map([
  [SWAP_ROUTER_ADDRESS, swapRouterProgram],
  [PAIR_FACTORY_ADDRESS, pairFactoryProgram],
  [DISTRIBUTOR_ADDRESS, distributorProgram],
]);

/** The program at an address, in lower case. */
export function programAt(state: EvmState, address: string): Program | undefined {
  const known = deployed.get(address);
  if (known !== undefined) return known;
  if (isWrappedNative(state, address)) return wrappedNativeProgram(address);
  if (isVault(state, address)) return vaultProgram(address);
  return tokensOfPair(state, address) === undefined ? undefined : pairProgram(address);
}

function isVault({ contracts, world, caip2 }: EvmState, address: string): boolean {
  return contracts.get(address, VAULT) !== undefined || world.plannedVault(caip2, address) !== undefined;
}

/** Whether the address is that of the token which stands for the chain's native asset. */
export function isWrappedNative(state: EvmState, address: string): boolean {
  return hasNativeAsset(state) && address === wrappedNativeOn(state.caip2);
}

/** The account that a call of a program pays besides its own token's; undefined for other calls. */
export function programRecipient(data: Uint8Array): string | undefined {
  return swapRecipient(data) ?? vaultRecipient(data);
}
