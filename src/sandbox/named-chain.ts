import { chainNamed } from '../engine/assets/known-chains.ts';
import { invalidField } from '../errors.ts';
import type { ControllableChains } from './controllable-chains.ts';

/**
 * Returns the CAIP-2 id of a simulated chain, given by id or name.
 *
 * @throws ApiError invalid_data
 */
export function requireSimulated(chains: ControllableChains, chain: string): string {
  const caip2 = chainNamed(chain)?.caip2 ?? chain;
  if (chains.has(caip2)) return caip2;
  throw invalidField('/chain', `expected the CAIP-2 id or name of a simulated chain, got \`${chain}\``);
}

/**
 * Returns the CAIP-2 id of a simulated EVM chain.
 *
 * @throws ApiError invalid_data
 */
export function requireSimulatedEvm(chains: ControllableChains, chain: string): string {
  const caip2 = requireSimulated(chains, chain);
  if (caip2.startsWith('eip155:')) return caip2;
  throw invalidField('/chain', `expected an EVM chain, got \`${chain}\``);
}

/**
 * Returns the CAIP-2 id of a simulated chain whose nodes offer JSON-RPC, given by id, name or, for an EVM chain,
 * number.
 *
 * @throws ApiError invalid_data
 */
export function rpcChain(chains: ControllableChains, chain: string): string {
  const caip2 = requireSimulated(chains, /^\d+$/.test(chain) ? `eip155:${chain}` : chain);
  if (/^(eip155|solana):/.test(caip2)) return caip2;
  throw invalidField('/chain', `expected an EVM or Solana chain, got \`${chain}\``);
}
