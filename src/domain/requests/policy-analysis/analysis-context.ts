import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { CreatePolicyRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import { type CompiledPolicy, compilePolicy, type RuleInput } from '../../../policy/compile.ts';
import { strictly } from '../../../policy/strict.ts';
import { relocateIssues } from '../../../relocate-issues.ts';
import type { App } from '../../access/apps/app.entity.ts';
import { findApp, listApps } from '../../access/apps/find-app.ts';
import { checkRules } from '../../access/policies/check-rules.ts';
import { PolicyEntity } from '../../access/policies/policy.entity.ts';
import { WalletEntity } from '../../wallets/wallets/wallet.entity.ts';

/** The context of operator questions about policies; no app is authenticated. */
export interface AnalysisContext {
  readonly em: SqlEntityManager;
  /** The server's current time, Unix ms. */
  readonly nowMs: number;
  /** The only app that may be asked about. Undefined: every app. */
  readonly onlyAppId?: string | undefined;
  /** Throws ApiError invalid_data for a body that the operation would refuse; pointers begin with `at`. */
  readonly checkRequest: (operationId: string, body: unknown, at: string) => void;
}

/** A policy that is not stored. Everything except rules and chain type has a default. */
export type DraftPolicy = Pick<CreatePolicyRequest, 'chain_type' | 'rules'> & Partial<CreatePolicyRequest>;

/**
 * The app a question is about: the one named, otherwise the app of the named wallet or policy, otherwise the only
 * app. With `onlyAppId` it is always that app.
 *
 * @throws ApiError not_found; invalid_data when there are several to choose from.
 */
export async function findAppOf(
  { em, onlyAppId }: Pick<AnalysisContext, 'em' | 'onlyAppId'>,
  named: { appId?: string | undefined; walletId?: string | undefined; policyId?: string | undefined },
): Promise<App> {
  if (onlyAppId !== undefined) {
    if (named.appId !== undefined && named.appId !== onlyAppId) throw notFound('App');
    return findApp(em, onlyAppId);
  }
  if (named.appId !== undefined) return findApp(em, named.appId);
  const appId = (await appIdOfWallet(em, named.walletId)) ?? (await appIdOfPolicy(em, named.policyId));
  if (appId !== undefined) return findApp(em, appId);
  const apps = await listApps(em);
  const [only] = apps;
  if (only === undefined || apps.length > 1)
    throw invalidField('/app_id', `is required: there are ${apps.length} apps`);
  return only;
}

async function appIdOfWallet(em: SqlEntityManager, id: string | undefined): Promise<string | undefined> {
  if (id === undefined) return undefined;
  return (await em.findOne(WalletEntity, { id }))?.appId;
}

async function appIdOfPolicy(em: SqlEntityManager, id: string | undefined): Promise<string | undefined> {
  if (id === undefined) return undefined;
  return (await em.findOne(PolicyEntity, { id }))?.appId;
}

/**
 * Compiles a draft as if it were stored.
 *
 * @param at JSON pointer to the draft in the question's body.
 * @throws ApiError invalid_data, invalid_policy_format
 */
export async function compileDraft(
  context: AnalysisContext & Pick<OperationContext, 'app'>,
  draft: DraftPolicy,
  at: string,
): Promise<CompiledPolicy> {
  const whole = { version: '1.0', name: 'Draft', ...draft };
  context.checkRequest('createPolicy', whole, at);
  try {
    await checkRules(context, draft.rules, draft.chain_type, (index) => `/rules/${index}`);
  } catch (error) {
    throw relocateIssues(error, at);
  }
  const rules = draft.rules as unknown as readonly (Omit<RuleInput, 'id'> & { id?: string })[];
  return compilePolicy({
    id: 'draft',
    chain_type: draft.chain_type,
    // Rules of a stored policy keep their ids, so that traces name the rules their author knows.
    rules: rules.map((rule, index) => ({ ...rule, id: rule.id ?? `rule ${index}` })),
  });
}

/**
 * The action as the app's policies evaluate it.
 *
 * NOTE: every composition leaves `strict_methods` off for apps that do not set it.
 */
export function evaluatedAction({ settings }: Pick<App, 'settings'>, action: PolicyAction): PolicyAction {
  return settings.strict_methods === true ? strictly(action) : action;
}

/** @throws ApiError invalid_data when a policy is evaluated for a wallet of another chain type. */
export function requireChain(policyChain: string, walletChain: string, pointer: string): void {
  if (policyChain === walletChain) return;
  throw invalidField(pointer, `the policy is for ${policyChain}, the wallet is on ${walletChain}`);
}

/** Relocates an error in the inner request to its position in the question. */
export function inRequest(error: unknown): unknown {
  return error instanceof ApiError ? relocateIssues(error, '/request') : error;
}
