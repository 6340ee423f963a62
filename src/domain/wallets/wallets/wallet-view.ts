import type {
  CustodialWalletChain,
  Wallet,
  WalletChainType,
  WalletEntityType,
} from '../../../generated/schemas.ts';
import type { WalletRow } from './wallet-row.ts';

/** A wallet in wire form: unset fields are left out, except where the contract uses null. */
export function walletView(row: WalletRow): Wallet {
  return {
    id: row.id,
    address: row.address,
    chain_type: row.chain_type as WalletChainType,
    ...(row.public_key === null ? {} : { public_key: row.public_key }),
    ...(row.display_name === null ? {} : { display_name: row.display_name }),
    ...(row.external_id === null ? {} : { external_id: row.external_id }),
    owner_id: row.owner_id,
    policy_ids: row.policy_id === null ? [] : [row.policy_id],
    additional_signers: JSON.parse(row.additional_signers),
    entity: row.entity_id === null ? null : { id: row.entity_id, type: row.entity_type as WalletEntityType },
    ...custodyView(row),
    created_at: row.created_at_ms,
    imported_at: row.imported_at_ms,
    exported_at: row.exported_at_ms,
    archived_at: row.archived_at_ms,
  };
}

function custodyView(row: WalletRow): Pick<Wallet, 'custody' | 'chain'> {
  if (row.custody_provider === null || row.custody_provider_user_id === null) return {};
  return {
    custody: { provider: row.custody_provider, provider_user_id: row.custody_provider_user_id },
    ...(row.custody_chain === null ? {} : { chain: row.custody_chain as CustodialWalletChain }),
  };
}
