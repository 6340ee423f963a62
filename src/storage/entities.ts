import type { InferKyselyDB } from '@mikro-orm/sql';
import { AccountEntity } from '../domain/accounts/account.entity.ts';
import { AccountWalletEntity } from '../domain/accounts/account-wallet.entity.ts';
import { AggregationEntity } from '../domain/aggregations/aggregation.entity.ts';
import { AggregationRecordEntity } from '../domain/aggregations/aggregation-record.entity.ts';
import { AllowlistEntryEntity } from '../domain/allowlist/allowlist-entry.entity.ts';
import { AppEntity } from '../domain/apps/app.entity.ts';
import { ChainPositionEntity } from '../domain/chains/chain-position.entity.ts';
import { ConditionSetEntity } from '../domain/condition-sets/condition-set.entity.ts';
import { ConditionSetItemEntity } from '../domain/condition-sets/condition-set-item.entity.ts';
import { OutboxEventEntity } from '../domain/events/outbox-event.entity.ts';
import { IdempotencyRecordEntity } from '../domain/idempotency/idempotency-record.entity.ts';
import { IntentEntity } from '../domain/intents/intent.entity.ts';
import { IntentPartyEntity } from '../domain/intents/intent-party.entity.ts';
import { IntentSignatureEntity } from '../domain/intents/intent-signature.entity.ts';
import { KeyQuorumEntity } from '../domain/key-quorums/key-quorum.entity.ts';
import { KeyQuorumMemberEntity } from '../domain/key-quorums/key-quorum-member.entity.ts';
import { OrganizationEntity } from '../domain/organizations/organization.entity.ts';
import { OrganizationSecretEntity } from '../domain/organizations/organization-secret.entity.ts';
import { PolicyEntity } from '../domain/policies/policy.entity.ts';
import { AppSigningKeyEntity } from '../domain/tokens/app-signing-key.entity.ts';
import { UserSessionEntity } from '../domain/tokens/user-session.entity.ts';
import { TransactionEntity } from '../domain/transactions/transaction.entity.ts';
import { UserKeyEntity } from '../domain/user-keys/user-key.entity.ts';
import { DeletedUserEntity } from '../domain/users/deleted-user.entity.ts';
import { LinkedAccountEntity } from '../domain/users/linked-account.entity.ts';
import { UserEntity } from '../domain/users/user.entity.ts';
import { UserSearchTermEntity } from '../domain/users/user-search-term.entity.ts';
import { WalletActionEntity } from '../domain/wallet-actions/wallet-action.entity.ts';
import { WalletActionStepEntity } from '../domain/wallet-actions/wallet-action-step.entity.ts';
import { WalletUseEntity } from '../domain/wallet-uses/wallet-use.entity.ts';
import { MasterKeyCheckEntity } from '../domain/wallets/master-key-check.entity.ts';
import { WalletEntity } from '../domain/wallets/wallet.entity.ts';
import { WalletImportEntity } from '../domain/wallets/wallet-import.entity.ts';
import { WalletKeyEntity } from '../domain/wallets/wallet-key.entity.ts';
import { WalletSignerEntity } from '../domain/wallets/wallet-signer.entity.ts';
import { WebhookDeliveryEntity } from '../domain/webhooks/webhook-delivery.entity.ts';
import { WebhookEndpointEntity } from '../domain/webhooks/webhook-endpoint.entity.ts';
import { WebhookSecretEntity } from '../domain/webhooks/webhook-secret.entity.ts';

/** Every table. A new entity is listed here, then `node src/storage/write-schema.ts` is run. */
export const entities = [
  AccountEntity,
  AccountWalletEntity,
  AggregationEntity,
  AggregationRecordEntity,
  AllowlistEntryEntity,
  AppEntity,
  AppSigningKeyEntity,
  ChainPositionEntity,
  ConditionSetEntity,
  ConditionSetItemEntity,
  DeletedUserEntity,
  IdempotencyRecordEntity,
  IntentEntity,
  IntentPartyEntity,
  IntentSignatureEntity,
  KeyQuorumEntity,
  KeyQuorumMemberEntity,
  LinkedAccountEntity,
  MasterKeyCheckEntity,
  OrganizationEntity,
  OrganizationSecretEntity,
  OutboxEventEntity,
  PolicyEntity,
  TransactionEntity,
  UserEntity,
  UserKeyEntity,
  UserSearchTermEntity,
  UserSessionEntity,
  WalletActionEntity,
  WalletActionStepEntity,
  WalletEntity,
  WalletImportEntity,
  WalletKeyEntity,
  WalletSignerEntity,
  WalletUseEntity,
  WebhookDeliveryEntity,
  WebhookEndpointEntity,
  WebhookSecretEntity,
] as const;

/** The tables as Kysely sees them: `em.getKysely<Tables>()`. Values are the database's own, columns snake_case. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;
