import { setImmediate } from 'node:timers/promises';
import type { WalletAuthority } from '../../../authorization/wallet-authority.ts';
import type { WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { NewWalletKey } from '../../../ports/key-vault.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';

/** A new key, sealed for the wallet that will have it. */
export interface KeyOfWallet extends NewWalletKey {
  readonly walletId: string;
  /** What the key is sealed under; undefined without one. */
  readonly authority?: WalletAuthority | undefined;
}

type KeyContext = Pick<OperationContext, 'app' | 'ids' | 'vault'>;

/** Draws the id and the key of a new wallet. */
export async function createWalletKey(
  { app, ids, vault }: KeyContext,
  chainType: WalletChainType,
  authority?: WalletAuthority | undefined,
): Promise<KeyOfWallet> {
  const walletId = ids.cuid2();
  const binding = walletKeyBinding({ id: walletId, app_id: app.id, chain_type: chainType });
  return { ...(await vault.createWalletKey(binding, authority)), walletId, authority };
}

/** How many keys are derived, or wallets stored, before other requests run: each takes a millisecond or more. */
export const KEYS_AT_ONCE = 10;

/** Draws several keys, a few of them concurrently: deriving them runs on several threads. */
export async function createWalletKeys(
  context: KeyContext,
  chainTypes: readonly WalletChainType[],
  authorities: readonly (WalletAuthority | undefined)[] = [],
): Promise<KeyOfWallet[]> {
  const keys: KeyOfWallet[] = [];
  for (let from = 0; from < chainTypes.length; from += KEYS_AT_ONCE) {
    const some = chainTypes.slice(from, from + KEYS_AT_ONCE);
    const drawn = some.map((chainType, at) => createWalletKey(context, chainType, authorities[from + at]));
    keys.push(...(await Promise.all(drawn)));
    await setImmediate();
  }
  return keys;
}
