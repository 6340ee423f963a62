import { findVault } from '../../domain/money/earn/find-vault.ts';
import { readVaultView } from '../../domain/money/earn/vault-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getEthereumEarnVault'> = async ({ path }, context) =>
  readVaultView(context, await findVault(context, path.vault_id));
