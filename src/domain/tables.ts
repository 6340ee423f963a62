import type { InferKyselyDB } from '@mikro-orm/sql';
import type { ColumnType } from 'kysely';
import { AggregationEntity } from './access/aggregations/aggregation.entity.ts';
import { AggregationRecordEntity } from './access/aggregations/aggregation-record.entity.ts';
import { AppEntity } from './access/apps/app.entity.ts';
import { AttachmentEntity } from './access/automations/attachment.entity.ts';
import { AutomationEntity } from './access/automations/automation.entity.ts';
import { ExecutionEntity } from './access/automations/execution.entity.ts';
import { ChainPositionEntity } from './access/chains/chain-position.entity.ts';
import { ConditionSetEntity } from './access/condition-sets/condition-set.entity.ts';
import { ConditionSetItemEntity } from './access/condition-sets/condition-set-item.entity.ts';
import { KeyQuorumEntity } from './access/key-quorums/key-quorum.entity.ts';
import { KeyQuorumChangeEntity } from './access/key-quorums/key-quorum-change.entity.ts';
import { KeyQuorumMemberEntity } from './access/key-quorums/key-quorum-member.entity.ts';
import { KeyQuorumSealEntity } from './access/key-quorums/key-quorum-seal.entity.ts';
import { VoucherKeyEntity } from './access/key-quorums/voucher-key.entity.ts';
import { OperatorEntity } from './access/operators/operator.entity.ts';
import { OrganizationEntity } from './access/organizations/organization.entity.ts';
import { OrganizationSecretEntity } from './access/organizations/organization-secret.entity.ts';
import { PolicyEntity } from './access/policies/policy.entity.ts';
import { PolicySealEntity } from './access/policies/policy-seal.entity.ts';
import { DeletedUserEntity } from './access/user-records/deleted-user.entity.ts';
import { LinkedAccountEntity } from './access/user-records/linked-account.entity.ts';
import { UserEntity } from './access/user-records/user.entity.ts';
import { WebhookDeliveryEntity } from './access/webhooks/webhook-delivery.entity.ts';
import { WebhookEndpointEntity } from './access/webhooks/webhook-endpoint.entity.ts';
import { WebhookSecretEntity } from './access/webhooks/webhook-secret.entity.ts';
import { AuditCheckpointEntity } from './base/audit/audit-checkpoint.entity.ts';
import { AuditKeyEntity } from './base/audit/audit-key.entity.ts';
import { AuditRecordEntity } from './base/audit/audit-record.entity.ts';
import { AuditTileEntity } from './base/audit/audit-tile.entity.ts';
import { PendingRecordEntity } from './base/audit/pending-record.entity.ts';
import { OutboxEventEntity } from './base/events/outbox-event.entity.ts';
import { FingerprintKeyEntity } from './base/fingerprints/fingerprint-key.entity.ts';
import { IdempotencyRecordEntity } from './base/idempotency/idempotency-record.entity.ts';
import { LockSecretEntity } from './base/processes/lock-secret.entity.ts';
import { ServerProcessEntity } from './base/processes/server-process.entity.ts';
import { AcceptedAccountEntity } from './base/restores/accepted-account.entity.ts';
import { DatabaseIdentityEntity } from './base/restores/database-identity.entity.ts';
import { RestoreEntity } from './base/restores/restore.entity.ts';
import { UsedSignatureEntity } from './base/used-signatures/used-signature.entity.ts';
import { CardEntity } from './money/cards/card.entity.ts';
import { CardCustomerEntity } from './money/cards/card-customer.entity.ts';
import { EarnVaultEntity } from './money/earn/earn-vault.entity.ts';
import { ExternalFiatAccountEntity } from './money/fiat-accounts/external-fiat-account.entity.ts';
import { FiatCustomerEntity } from './money/fiat-customers/fiat-customer.entity.ts';
import { FiatDepositEntity } from './money/fiat-deposits/fiat-deposit.entity.ts';
import { FiatDepositAccountEntity } from './money/fiat-deposits/fiat-deposit-account.entity.ts';
import { FiatDepositInstructionsEntity } from './money/fiat-deposits/fiat-deposit-instructions.entity.ts';
import { FiatPositionEntity } from './money/fiat-deposits/fiat-position.entity.ts';
import { TransactionEntity } from './money/transactions/transaction.entity.ts';
import { TransactionAuthorizationEntity } from './money/transactions/transaction-authorization.entity.ts';
import { WalletActionEntity } from './money/wallet-actions/wallet-action.entity.ts';
import { WalletActionStepEntity } from './money/wallet-actions/wallet-action-step.entity.ts';
import { IntentEntity } from './requests/intents/intent.entity.ts';
import { IntentPartyEntity } from './requests/intents/intent-party.entity.ts';
import { IntentSignatureEntity } from './requests/intents/intent-signature.entity.ts';
import { AccountEntity } from './wallets/accounts/account.entity.ts';
import { AccountWalletEntity } from './wallets/accounts/account-wallet.entity.ts';
import { AllowlistEntryEntity } from './wallets/allowlist/allowlist-entry.entity.ts';
import { OauthDeviceCodeEntity } from './wallets/oauth/oauth-device-code.entity.ts';
import { OauthRefreshTokenEntity } from './wallets/oauth/oauth-refresh-token.entity.ts';
import { OauthWrongCodeEntity } from './wallets/oauth/oauth-wrong-code.entity.ts';
import { WalletRecoveryEntity } from './wallets/recovery/wallet-recovery.entity.ts';
import { AppSigningKeyEntity } from './wallets/tokens/app-signing-key.entity.ts';
import { OauthGrantEntity } from './wallets/tokens/oauth-grant.entity.ts';
import { UserSessionEntity } from './wallets/tokens/user-session.entity.ts';
import { UserKeyEntity } from './wallets/user-keys/user-key.entity.ts';
import { UserSearchTermEntity } from './wallets/users/user-search-term.entity.ts';
import { UseVolumeEntity } from './wallets/wallet-uses/use-volume.entity.ts';
import { WalletUseEntity } from './wallets/wallet-uses/wallet-use.entity.ts';
import { MasterKeyCheckEntity } from './wallets/wallets/master-key-check.entity.ts';
import { WalletEntity } from './wallets/wallets/wallet.entity.ts';
import { WalletImportEntity } from './wallets/wallets/wallet-import.entity.ts';
import { WalletKeyEntity } from './wallets/wallets/wallet-key.entity.ts';
import { WalletSignerEntity } from './wallets/wallets/wallet-signer.entity.ts';

/** Every table. A new entity is listed here, then `npm run migration -- <what-it-does>` is run. */
export const entities = [
  AcceptedAccountEntity,
  AccountEntity,
  AccountWalletEntity,
  AggregationEntity,
  AggregationRecordEntity,
  AllowlistEntryEntity,
  AppEntity,
  AppSigningKeyEntity,
  AttachmentEntity,
  AuditCheckpointEntity,
  AuditKeyEntity,
  AuditRecordEntity,
  AuditTileEntity,
  AutomationEntity,
  CardCustomerEntity,
  CardEntity,
  ChainPositionEntity,
  ConditionSetEntity,
  ConditionSetItemEntity,
  DatabaseIdentityEntity,
  DeletedUserEntity,
  EarnVaultEntity,
  ExecutionEntity,
  FiatCustomerEntity,
  ExternalFiatAccountEntity,
  FiatDepositAccountEntity,
  FiatDepositEntity,
  FiatDepositInstructionsEntity,
  FiatPositionEntity,
  FingerprintKeyEntity,
  IdempotencyRecordEntity,
  IntentEntity,
  IntentPartyEntity,
  IntentSignatureEntity,
  KeyQuorumChangeEntity,
  KeyQuorumEntity,
  KeyQuorumMemberEntity,
  KeyQuorumSealEntity,
  LinkedAccountEntity,
  LockSecretEntity,
  MasterKeyCheckEntity,
  OauthDeviceCodeEntity,
  OauthGrantEntity,
  OauthRefreshTokenEntity,
  OauthWrongCodeEntity,
  OperatorEntity,
  OrganizationEntity,
  OrganizationSecretEntity,
  OutboxEventEntity,
  PendingRecordEntity,
  PolicyEntity,
  PolicySealEntity,
  VoucherKeyEntity,
  RestoreEntity,
  ServerProcessEntity,
  TransactionAuthorizationEntity,
  TransactionEntity,
  UsedSignatureEntity,
  UserEntity,
  UserKeyEntity,
  UserSearchTermEntity,
  UserSessionEntity,
  WalletActionEntity,
  WalletActionStepEntity,
  WalletEntity,
  WalletImportEntity,
  WalletKeyEntity,
  WalletRecoveryEntity,
  WalletSignerEntity,
  UseVolumeEntity,
  WalletUseEntity,
  WebhookDeliveryEntity,
  WebhookEndpointEntity,
  WebhookSecretEntity,
] as const;

type Rows = InferKyselyDB<(typeof entities)[number]>;

/** What a column of an entity's value holds: JSON is text there. */
type Raw<Value> =
  Value extends ColumnType<infer Selected, infer Inserted, infer Updated>
    ? ColumnType<Raw<Selected>, Raw<Inserted>, Raw<Updated>>
    : Value extends string | number | Uint8Array | null | undefined
      ? Value
      : Value extends { __raw?: infer Text }
        ? NonNullable<Text>
        : Value;

/** The tables as Kysely sees them: `em.getKysely<Tables>()`. Values are the database's own, columns snake_case. */
export type Tables = {
  [Table in keyof Rows]: { [Column in keyof Rows[Table]]: Raw<Rows[Table][Column]> };
};
