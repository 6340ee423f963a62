import { normalizeEthereumAddress } from '../../../engine/assets/addresses.ts';
import { type LightAccountFactory, lightAccountV2 } from '../../../engine/signing/ethereum/smart-accounts.ts';
import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findApp } from './find-app.ts';

/** Name of the app setting that replaces the published factory. */
export const SMART_ACCOUNT_FACTORY_SETTING = 'smart_account_factory';

/**
 * Returns the factory of the app's smart wallets: Light Account 2.0.0 unless the app's settings name another factory.
 */
export async function findSmartAccountFactory({
  app,
  em,
}: Pick<OperationContext, 'app' | 'em'>): Promise<LightAccountFactory> {
  const { settings } = await findApp(em, app.id);
  const setting = settings[SMART_ACCOUNT_FACTORY_SETTING];
  return setting === undefined ? lightAccountV2 : readFactory(checkSmartAccountFactory(setting));
}

interface SmartAccountFactorySetting {
  readonly factory_address: string;
  readonly implementation_address: string;
  readonly version: string;
}

/**
 * Checks the setting `{factory_address, implementation_address, version?}` of a Light Account 2 factory.
 *
 * @throws ApiError invalid_data that names the setting.
 */
export function checkSmartAccountFactory(value: unknown): SmartAccountFactorySetting {
  const pointer = `/settings/${SMART_ACCOUNT_FACTORY_SETTING}`;
  if (typeof value !== 'object' || value === null) throw invalidField(pointer, 'expected an object');
  const fields = value as Record<string, unknown>;
  const { version = lightAccountV2.version } = fields;
  if (typeof version !== 'string') throw invalidField(`${pointer}/version`, 'expected a string');
  return {
    factory_address: readAddress(fields.factory_address, `${pointer}/factory_address`),
    implementation_address: readAddress(fields.implementation_address, `${pointer}/implementation_address`),
    version,
  };
}

function readFactory(setting: SmartAccountFactorySetting): LightAccountFactory {
  return {
    factoryAddress: setting.factory_address,
    implementationAddress: setting.implementation_address,
    version: setting.version,
  };
}

function readAddress(value: unknown, pointer: string): string {
  const address = typeof value === 'string' ? normalizeEthereumAddress(value) : undefined;
  if (address === undefined) throw invalidField(pointer, 'expected an address of `ethereum`');
  return address;
}
