import { invalidField, notFound } from '../../../errors.ts';
import { requestValidators } from '../../../generated/request-validators.js';
import type { PolicyRuleProposal, PolicyRuleRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { checkOwner } from '../../access/key-quorums/resolve-owner.ts';
import { checkRuleCount, checkRules } from '../../access/policies/check-rules.ts';
import { findPolicyForUpdate, type StoredPolicy } from '../../access/policies/find-policy.ts';
import { requirePartsAfterUpdate, requirePartsOfOwner } from '../../access/policies/policy-parts.ts';
import { createPolicyRule, deletePolicyRule, updatePolicyRule } from '../../access/policies/policy-rules.ts';
import { policyView } from '../../access/policies/policy-view.ts';
import { updatePolicy } from '../../access/policies/update-policy.ts';
import type { Proposal, Subject } from './proposal.ts';

const AT_ROOT = () => '';
const fromRoot = (_: number, place: string): string => place;

async function hold(
  context: OperationContext,
  { policy_id: id }: { policy_id: string },
): Promise<Subject<StoredPolicy>> {
  const row = await findPolicyForUpdate(context, id);
  return { id: row.id, ownerId: row.ownerId, row };
}

const samePath = <Path>(_: unknown, path: Path): Path => path;
const ruleOf = ({ rule_id: id }: { rule_id: string }): string => id;

function findRule({ row }: Subject<StoredPolicy>, { rule_id: ruleId }: { rule_id: string }) {
  return row.rules.find(({ id }) => id === ruleId);
}

function requireRule(subject: Subject<StoredPolicy>, path: { rule_id: string }): void {
  if (findRule(subject, path) === undefined) throw notFound('Rule');
}

/** A complete proposed rule; otherwise a message that names the first missing field. */
function completeRule(proposed: PolicyRuleProposal): PolicyRuleRequest | { lacks: string; message: string } {
  const validate = requestValidators.createPolicyRule.body!;
  if (validate(proposed)) return proposed as PolicyRuleRequest;
  const [fault] = validate.errors ?? [];
  const missing = fault?.params.missingProperty;
  const lacks = `${fault?.instancePath ?? ''}${missing === undefined ? '' : `/${missing}`}`;
  return { lacks, message: missing === undefined ? (fault?.message ?? 'is not valid') : 'is required' };
}

export const updatePolicyProposal: Proposal<'updatePolicy', StoredPolicy> = {
  intentType: 'POLICY',
  hold,
  pathOf: samePath,
  async check(context, { row }, { body }) {
    const ownerId = await checkOwner(context, body);
    if (body.rules !== undefined) {
      await checkRules(context, body.rules, row.chainType, (index) => `/rules/${index}`);
    }
    await requirePartsAfterUpdate(context, row, body, ownerId);
  },
  priorState: (_, { row }) => policyView(row),
  run: async (context, { path, body }) => policyView(await updatePolicy(context, path.policy_id, body)),
};

export const createPolicyRuleProposal: Proposal<'createPolicyRule', StoredPolicy> = {
  intentType: 'RULE',
  hold,
  pathOf: samePath,
  async check(context, { row }, { body }) {
    checkRuleCount(row.rules.length + 1);
    const rule = completeRule(body);
    // The contract allows incomplete rules to be proposed.
    if ('lacks' in rule) return;
    await checkRules(context, [rule], row.chainType, AT_ROOT);
    await requirePartsOfOwner(context, row.ownerId, [rule], fromRoot);
  },
  async run(context, { path, body }) {
    const rule = completeRule(body);
    if ('lacks' in rule) throw invalidField(rule.lacks, rule.message);
    return createPolicyRule(context, path.policy_id, rule);
  },
};

export const updatePolicyRuleProposal: Proposal<'updatePolicyRule', StoredPolicy> = {
  intentType: 'RULE',
  hold,
  pathOf: samePath,
  resourceId: ruleOf,
  async check(context, subject, { path, body }) {
    requireRule(subject, path);
    await checkRules(context, [body], subject.row.chainType, AT_ROOT);
    await requirePartsOfOwner(context, subject.row.ownerId, [body], fromRoot);
  },
  priorState: (_, subject, path) => findRule(subject, path),
  run: (context, { path, body }) => updatePolicyRule(context, path.policy_id, path.rule_id, body),
};

export const deletePolicyRuleProposal: Proposal<'deletePolicyRule', StoredPolicy> = {
  intentType: 'RULE',
  hold,
  pathOf: samePath,
  resourceId: ruleOf,
  check: (_, subject, { path }) => requireRule(subject, path),
  priorState: (_, subject, path) => findRule(subject, path),
  async run(context, { path }) {
    await deletePolicyRule(context, path.policy_id, path.rule_id);
    return { success: true };
  },
};
