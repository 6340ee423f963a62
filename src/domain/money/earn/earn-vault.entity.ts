import { defineEntity, p } from '@mikro-orm/core';

/** A vault that an app has set up. Its contract does the accounting; nothing of that is stored. */
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
    /** The vault, an EVM address with its checksum. */
    address: p.text(),
    /** The token that it accepts. */
    assetAddress: p.text(),
    assetSymbol: p.text(),
    assetDecimals: p.integer(),
    /** Null when the app has no wallet with the admin's address. */
    adminWalletId: p.text().strictNullable(),
    adminAddress: p.text(),
    /** The app's part of the yield, in hundredths of a percent. */
    feeBps: p.integer(),
    createdAtMs: p.bigint('number'),
  },
  uniques: [{ name: 'earn_vaults_by_address', properties: ['appId', 'caip2', 'address'] }],
});
