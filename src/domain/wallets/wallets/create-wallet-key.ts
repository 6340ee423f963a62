import { setImmediate } from 'node:timers/promises';
import type { WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { NewWalletKey } from '../../../ports/key-vault.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { type NewAuthority, type SealedFor, sealedFor } from '../wallet-authorities/new-authority.ts';

/** A new key, sealed for the wallet that will have it. */
export interface KeyOfWallet extends NewWalletKey, SealedFor {
  readonly walletId: string;
}

type KeyContext = Pick<OperationContext, 'app' | 'ids' | 'vault'>;

/** Draws the id and the key of a new wallet. */
export async function createWalletKey(
  { app, ids, vault }: KeyContext,
  chainType: WalletChainType,
  planned?: NewAuthority,
): Promise<KeyOfWallet> {
  const walletId = ids.cuid2();
  const binding = walletKeyBinding({ id: walletId, app_id: app.id, chain_type: chainType });
  const owned = sealedFor(app.id, walletId, planned);
  return { ...(await vault.createWalletKey(binding, owned.authority)), ...owned, walletId };
}

/** How many keys are derived, or wallets stored, before other requests run: each takes a millisecond or more. */
export const KEYS_AT_ONCE = 10;

/** Draws several keys, a few of them concurrently: deriving them runs on several threads. */
export async function createWalletKeys(
  context: KeyContext,
  chainTypes: readonly WalletChainType[],
  authorities: readonly NewAuthority[] = [],
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
