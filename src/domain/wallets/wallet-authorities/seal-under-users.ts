import type { WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { SealedKey } from '../../../ports/key-vault.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { authorityUnder, type PartyFields, type SealedFor } from './new-authority.ts';

interface DrawnKey extends SealedFor {
  readonly walletId: string;
  readonly sealed: SealedKey;
}

interface OwnedWallet extends PartyFields {
  readonly chain_type: WalletChainType;
}

/**
 * Seals keys of new wallets of users, which were drawn before the key quorum of the users was stored. They stay as they
 * are if the vault could verify nothing of it.
 *
 * @param ownerId a key quorum of users. `wallets`: by index, as `keys`.
 */
export async function sealUnderUsers<Key extends DrawnKey>(
  context: Pick<OperationContext, 'app' | 'em' | 'vault'>,
  keys: readonly Key[],
  { ownerId, wallets }: { readonly ownerId: string; readonly wallets: readonly OwnedWallet[] },
): Promise<Key[]> {
  const { app, vault } = context;
  // Most apps: saves reading the key quorum.
  if (vault.loginApps?.includes(app.id) !== true) return [...keys];
  const authorities: Awaited<ReturnType<typeof authorityUnder>>[] = [];
  for (const wallet of wallets) {
    authorities.push(await authorityUnder(context, ownerId, wallet));
    if (authorities[0] === undefined) return [...keys];
  }
  // All at once: a vault elsewhere is asked for all of them in one pass.
  return Promise.all(
    keys.map(async (key, index) => {
      const authority = authorities[index];
      if (authority === undefined) return key;
      const { chain_type } = wallets[index]!;
      const binding = walletKeyBinding({ id: key.walletId, app_id: app.id, chain_type });
      const sealed = await vault.sealUnderAuthority(key.sealed, binding, authority);
      return { ...key, sealed, authority, ownerId };
    }),
  );
}
