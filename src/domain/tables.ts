import type { InferKyselyDB } from '@mikro-orm/sql';
import type { ColumnType } from 'kysely';
import { AggregationEntity, AggregationRecordEntity } from './access/aggregations/aggregation.entity.ts';
import { AppEntity } from './access/apps/app.entity.ts';
import {
  AttachmentEntity,
  AutomationEntity,
  ExecutionEntity,
} from './access/automations/automation.entity.ts';
import { ConditionSetEntity, ConditionSetItemEntity } from './access/condition-sets/condition-set.entity.ts';
import {
  KeyQuorumChangeEntity,
  KeyQuorumEntity,
  KeyQuorumMemberEntity,
  KeyQuorumSealEntity,
  VoucherKeyEntity,
} from './access/key-quorums/key-quorum.entity.ts';
import { OperatorEntity } from './access/operators/operator.entity.ts';
import { OrganizationEntity, OrganizationSecretEntity } from './access/organizations/organization.entity.ts';
import { PolicyEntity, PolicySealEntity } from './access/policies/policy.entity.ts';
import {
  DeletedUserEntity,
  LinkedAccountEntity,
  UserEntity,
  UserSearchTermEntity,
} from './access/user-records/user.entity.ts';
import {
  WebhookDeliveryEntity,
  WebhookEndpointEntity,
  WebhookSecretEntity,
} from './access/webhooks/webhook.entity.ts';
import {
  AuditCheckpointEntity,
  AuditKeyEntity,
  AuditRecordEntity,
  AuditTileEntity,
  PendingRecordEntity,
} from './base/audit/audit.entity.ts';
import { OutboxEventEntity } from './base/events/outbox-event.entity.ts';
import { FingerprintKeyEntity } from './base/fingerprints/fingerprint-key.entity.ts';
import { IdempotencyRecordEntity } from './base/idempotency/idempotency-record.entity.ts';
import {
  AppMoveEntity,
  LockSecretEntity,
  MovedRowEntity,
  ServerProcessEntity,
} from './base/processes/server-process.entity.ts';
import { UsedSignatureEntity } from './base/replay-protection/used-signature.entity.ts';
import {
  AcceptedAccountEntity,
  DatabaseIdentityEntity,
  RestoreEntity,
} from './base/restores/restore.entity.ts';
import { CardCustomerEntity, CardEntity } from './money/cards/card.entity.ts';
import { EarnVaultEntity } from './money/earn/earn-vault.entity.ts';
import { ExternalFiatAccountEntity } from './money/external-fiat-accounts/external-fiat-account.entity.ts';
import { FiatCustomerEntity } from './money/fiat-customers/fiat-customer.entity.ts';
import {
  FiatDepositAccountEntity,
  FiatDepositEntity,
  FiatDepositInstructionsEntity,
  FiatPositionEntity,
} from './money/fiat-deposits/fiat-deposit.entity.ts';
import {
  ChainPositionEntity,
  TransactionAuthorizationEntity,
  TransactionEntity,
} from './money/transactions/transaction.entity.ts';
import { WalletActionEntity, WalletActionStepEntity } from './money/wallet-actions/wallet-action.entity.ts';
import { IntentEntity, IntentPartyEntity, IntentSignatureEntity } from './requests/intents/intent.entity.ts';
import { AccountEntity, AccountWalletEntity } from './wallets/accounts/account.entity.ts';
import { AllowlistEntryEntity } from './wallets/allowlist/allowlist-entry.entity.ts';
import {
  OauthDeviceCodeEntity,
  OauthRefreshTokenEntity,
  OauthWrongCodeEntity,
} from './wallets/oauth/oauth.entity.ts';
import { WalletRecoveryEntity } from './wallets/recovery/wallet-recovery.entity.ts';
import { AppSigningKeyEntity, OauthGrantEntity, UserSessionEntity } from './wallets/tokens/session.entity.ts';
import { UserKeyEntity } from './wallets/user-keys/user-key.entity.ts';
import { UseVolumeEntity, WalletUseEntity } from './wallets/wallet-uses/wallet-use.entity.ts';
import {
  MasterKeyCheckEntity,
  WalletEntity,
  WalletImportEntity,
  WalletKeyEntity,
  WalletSignerEntity,
} from './wallets/wallets/wallet.entity.ts';

/** The entities of all tables. Add each new entity here, then run `npm run migration -- <what-it-does>`. */
export const entities = [
  AcceptedAccountEntity,
  AccountEntity,
  AccountWalletEntity,
  AggregationEntity,
  AggregationRecordEntity,
  AllowlistEntryEntity,
  AppEntity,
  AppMoveEntity,
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
  MovedRowEntity,
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

/** The database type of a column. JSON values are text in the database. */
type Raw<Value> =
  Value extends ColumnType<infer Selected, infer Inserted, infer Updated>
    ? ColumnType<Raw<Selected>, Raw<Inserted>, Raw<Updated>>
    : Value extends string | number | Uint8Array | null | undefined
      ? Value
      : Value extends { __raw?: infer Text }
        ? NonNullable<Text>
        : Value;

/**
 * The tables for Kysely: `em.getKysely<Tables>()`. Values have the types of the database, and columns are snake_case.
 */
export type Tables = {
  [Table in keyof Rows]: { [Column in keyof Rows[Table]]: Raw<Rows[Table][Column]> };
};
