import { listWallets } from '../../domain/wallets/wallets/list-wallets.ts';
import { walletView } from '../../domain/wallets/wallets/wallet-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWallets'> = async ({ query }, context) => {
  const filter = {
    chainType: query.chain_type,
    userId: query.user_id,
    authorizationKey: query.authorization_key,
    externalId: query.external_id,
    address: query.address,
    entityId: query.entity_id,
    includeArchived: query.include_archived,
  };
  const { wallets, nextCursor } = await listWallets(context, filter, query);
  return { data: wallets.map(walletView), next_cursor: nextCursor };
};
