import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { FiatEnvironment } from '../../../ports/fiat.ts';
import { jsonText } from '../../../storage/sql-functions.ts';

/**
 * The part of a provider's response about a customer that is stored. It has no links, because they are secrets of the
 * customer.
 */
export interface StoredSnapshot {
  readonly status: string;
  readonly terms: string;
  readonly verification: string;
  readonly rejectionReasons: readonly string[] | null;
  readonly capabilities: {
    readonly payin_crypto: string;
    readonly payout_crypto: string;
    readonly payin_fiat: string;
    readonly payout_fiat: string;
  };
  readonly endorsements: readonly {
    readonly name: string;
    readonly status: string;
    readonly missing: readonly string[] | null;
  }[];
  readonly requirementsDue: readonly string[];
  readonly futureRequirementsDue: readonly string[];
}

/**
 * A user or an organization as the customer of a provider, in one of its environments.
 *
 * INVARIANT: nothing that was submitted to the provider is stored, except a fingerprint of it.
 */
export const FiatCustomerEntity = defineEntity({
  name: 'FiatCustomer',
  tableName: 'fiat_customers',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** `user` or `organization`. */
    entityType: p.text(),
    entityId: p.text(),
    provider: p.text(),
    environment: p.text().$type<FiatEnvironment>(),
    /** The id that the provider has for the customer. */
    customerId: p.text(),
    snapshot: jsonText<StoredSnapshot>(),
    /** Counts the stored snapshots, so that an older snapshot never replaces a newer one. */
    version: p.integer(),
    /** When data was last submitted; null before the first submission. */
    submittedAtMs: p.bigint('number').strictNullable(),
    /** Recognizes a repetition of the last submission; null before the first submission. */
    submissionFingerprint: p.text().strictNullable(),
    /** When the provider was last polled. */
    checkedAtMs: p.bigint('number'),
    nextCheckAtMs: p.bigint('number'),
    /** The process that last moved `nextCheckAtMs` to claim the customer. */
    claimedBy: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /** When the snapshot last changed. */
    updatedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'fiat_customers_due', properties: ['nextCheckAtMs'] },
    { name: 'fiat_customers_by_provider', properties: ['provider', 'environment', 'customerId'] },
  ],
  uniques: [
    {
      name: 'fiat_customers_by_entity',
      properties: ['appId', 'entityType', 'entityId', 'provider', 'environment'],
    },
  ],
});

export type StoredFiatCustomer = InferEntity<typeof FiatCustomerEntity>;
