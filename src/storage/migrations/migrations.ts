import { initial } from './0001-initial.ts';
import { holdAuthorizationNonces } from './0002-hold-authorization-nonces.ts';
import { boundUseRecords } from './0003-bound-use-records.ts';
import { waitingAccounts } from './0004-waiting-accounts.ts';
import { keepSignersOfAnswers } from './0005-keep-signers-of-answers.ts';
import { stepsOfActions } from './0006-steps-of-actions.ts';
import { usedSignatures } from './0007-used-signatures.ts';
import { readTransfersOfNodes } from './0008-read-transfers-of-nodes.ts';
import { walletAutomations } from './0009-wallet-automations.ts';
import { devicesAndRecovery } from './0010-devices-and-recovery.ts';
import { fiatCustomers } from './0011-fiat-customers.ts';
import { earnVaults } from './0012-earn-vaults.ts';
import { fiatAccounts } from './0013-fiat-accounts.ts';
import { submissionFingerprints } from './0014-submission-fingerprints.ts';
import { cryptoDeposits } from './0015-crypto-deposits.ts';
import { publicDeviceClients } from './0016-public-device-clients.ts';
import { cards } from './0017-cards.ts';
import { operators } from './0018-operators.ts';
import { takeOverWork } from './0019-take-over-work.ts';
import { auditLog } from './0020-audit-log.ts';
import { restores } from './0021-restores.ts';
import { authoritiesOfWallets } from './0022-authorities-of-wallets.ts';
import { partitions } from './0023-partitions-contract-0021.ts';
import { policySeals } from './0024-policy-seals.ts';
import { keyQuorumSeals } from './0025-key-quorum-seals.ts';
import { vouchers } from './0026-vouchers.ts';
import { rateLevels } from './0027-rate-levels.ts';
import { findAuditRecords } from './0028-find-audit-records.ts';
import { transactionDoubts } from './0029-transaction-doubts.ts';
import { lockSecrets } from './0030-lock-secrets.ts';
import { listsAndRevokedSessions } from './0031-lists-and-revoked-sessions.ts';
import { findByState } from './0032-find-by-state.ts';
import { gasOfExecutions } from './0033-gas-of-executions.ts';
import { developerFees } from './0034-developer-fees.ts';
import { findNumbersInSets } from './0035-find-numbers-in-sets.ts';
import { movesOfApps } from './0036-moves-of-apps.ts';
import type { SchemaMigration } from './schema-migration.ts';

/** All migrations, oldest first. Released ones never change: test/house/released-migrations.txt. */
export const migrations: readonly SchemaMigration[] = [
  initial,
  holdAuthorizationNonces,
  boundUseRecords,
  waitingAccounts,
  keepSignersOfAnswers,
  stepsOfActions,
  usedSignatures,
  readTransfersOfNodes,
  walletAutomations,
  devicesAndRecovery,
  fiatCustomers,
  earnVaults,
  fiatAccounts,
  submissionFingerprints,
  cryptoDeposits,
  publicDeviceClients,
  cards,
  operators,
  takeOverWork,
  auditLog,
  restores,
  authoritiesOfWallets,
  partitions,
  policySeals,
  keyQuorumSeals,
  vouchers,
  rateLevels,
  findAuditRecords,
  transactionDoubts,
  lockSecrets,
  listsAndRevokedSessions,
  findByState,
  gasOfExecutions,
  developerFees,
  findNumbersInSets,
  movesOfApps,
];
