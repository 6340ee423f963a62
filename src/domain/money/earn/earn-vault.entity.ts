import { defineEntity, p } from '@mikro-orm/core';

/** A vault that an app has set up. The vault's smart contract does the accounting; no amounts are stored here. */
export const EarnVaultEntity = defineEntity({
  name: 'EarnVault',
  tableName: 'earn_vaults',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** `aave`, `morpho`, `tempo` or `veda`. */
    provider: p.text(),
    name: p.text(),
    caip2: p.text(),
    /** The checksum address of the vault's smart contract. */
    address: p.text(),
    /** The address of the token that the vault accepts. */
    assetAddress: p.text(),
    assetSymbol: p.text(),
    assetDecimals: p.integer(),
    /** The wallet with the admin's address; null if no wallet of the app has it. */
    adminWalletId: p.text().strictNullable(),
    adminAddress: p.text(),
    /** The app's share of the yield, in hundredths of a percent. */
    feeBps: p.integer(),
    createdAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'earn_vaults_by_address', properties: ['appId', 'caip2', 'address'] }],
});
