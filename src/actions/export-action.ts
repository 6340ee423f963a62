import type { PolicyAction } from '../policy/action.ts';

/** The policy action of an export. */
export function exportAction(isPhrase: boolean): PolicyAction {
  return { method: isPhrase ? 'exportSeedPhrase' : 'exportPrivateKey', units: [{ label: 'export' }] };
}
