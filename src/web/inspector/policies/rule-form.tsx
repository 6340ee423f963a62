import { useSignal } from '@preact/signals';
import { ArrowDown, ArrowUp, Plus, Trash2 } from 'lucide';
import { type AmountUnit, amountText, baseUnits, unitOf } from '../../../engine/assets/amount-units.ts';
import { groupedText } from '../names.ts';
import { Icon } from '../parts/icon.tsx';
import { Marked } from '../parts/prose.tsx';
import { chainTypes } from '../wallet-facts.ts';
import {
  aboutSource,
  type Condition,
  declarationOf,
  fieldsOf,
  methodsOf,
  type NamedParts,
  operatorsOf,
  operatorText,
  prefixOf,
  sourcesOf,
  sumOf,
  valueInputOf,
} from './conditions.ts';
import {
  type Draft,
  type Issue,
  issuesAt,
  moved,
  newCondition,
  newRule,
  type Rule,
  replaced,
  withField,
  withOperator,
  withSource,
} from './draft.ts';

/** A form that edits the rules of a draft. The chain type of a stored policy cannot change. */
export function RuleForm(props: {
  readonly draft: Draft;
  readonly names: NamedParts;
  readonly issues: readonly Issue[];
  readonly isStored: boolean;
  readonly change: (draft: Draft) => void;
}) {
  const { draft, issues, change } = props;
  const setRules = (rules: readonly Rule[]): void => change({ ...draft, rules });
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <div class="fields">
        <label class="wide">
          Name
          <input
            value={draft.name}
            onInput={({ currentTarget }) => change({ ...draft, name: currentTarget.value })}
          />
        </label>
        <Choice
          label="Chain type"
          value={draft.chain_type}
          options={chainTypes}
          isFixed={props.isStored}
          choose={(type) => change({ ...draft, chain_type: type })}
        />
      </div>
      {draft.rules.map((rule, index) => (
        <fieldset key={index} class="stack">
          <legend>Rule {index + 1}</legend>
          <div class="actions">
            <IconButton
              label={`Move rule ${index + 1} up`}
              icon={ArrowUp}
              press={() => setRules(moved(draft.rules, index, -1))}
            />
            <IconButton
              label={`Move rule ${index + 1} down`}
              icon={ArrowDown}
              press={() => setRules(moved(draft.rules, index, 1))}
            />
            <IconButton
              label={`Remove rule ${index + 1}`}
              icon={Trash2}
              press={() => setRules(replaced(draft.rules, index))}
            />
          </div>
          <RuleFields
            chainType={draft.chain_type}
            rule={rule}
            names={props.names}
            at={`/rules/${index}`}
            issues={issues}
            change={(changed) => setRules(replaced(draft.rules, index, changed))}
          />
        </fieldset>
      ))}
      <button type="button" onClick={() => setRules([...draft.rules, newRule(draft)])}>
        <Icon of={Plus} /> Add a rule
      </button>
    </form>
  );
}

function RuleFields(props: {
  readonly chainType: string;
  readonly rule: Rule;
  readonly names: NamedParts;
  readonly at: string;
  readonly issues: readonly Issue[];
  readonly change: (rule: Rule) => void;
}) {
  const { chainType, rule, at, change } = props;
  const { conditions } = rule;
  const issues = issuesAt(props.issues, at);
  const own = issues.filter(({ pointer }) => !pointer.startsWith(`${at}/conditions/`));
  const setConditions = (changed: readonly Condition[]): void => change({ ...rule, conditions: changed });
  return (
    <div>
      <div class="fields">
        <label class="wide">
          Rule name
          <input
            value={rule.name}
            onInput={({ currentTarget }) => change({ ...rule, name: currentTarget.value })}
          />
        </label>
        <Choice
          label="Method"
          value={rule.method}
          options={methodsOf(chainType)}
          choose={(method) => change({ ...rule, method })}
        />
        <Choice
          label="Action"
          value={rule.action}
          options={['ALLOW', 'DENY']}
          choose={(action) => change({ ...rule, action })}
        />
      </div>
      <Issues issues={own} />
      {conditions.length === 0 && <p class="quiet">Without conditions, the rule always matches.</p>}
      {conditions.map((condition, index) => (
        <div key={index} role="group" aria-label={`Condition ${index + 1}`} class="card">
          <ConditionFields
            sources={sourcesOf(chainType, rule.method)}
            condition={condition}
            unit={sumOf(condition, props.names)?.unit ?? unitOf(condition, conditions)}
            names={props.names}
            change={(changed) => setConditions(replaced(conditions, index, changed))}
          />
          <Issues issues={issuesAt(issues, `${at}/conditions/${index}`)} />
          <button
            type="button"
            class="plain"
            aria-label={`Remove condition ${index + 1}`}
            onClick={() => setConditions(replaced(conditions, index))}
          >
            <Icon of={Trash2} /> Remove
          </button>
        </div>
      ))}
      <button
        type="button"
        onClick={() => setConditions([...conditions, newCondition(chainType, rule.method)])}
      >
        <Icon of={Plus} /> Add a condition
      </button>
    </div>
  );
}

function ConditionFields(props: {
  readonly sources: readonly string[];
  readonly condition: Condition;
  readonly unit: AmountUnit | undefined;
  readonly names: NamedParts;
  readonly change: (condition: Condition) => void;
}) {
  const { condition, sources, unit, names: known, change } = props;
  const { field_source: source, field, operator } = condition;
  const names = Object.keys(fieldsOf(condition));
  const declaration = declarationOf(source);
  const isFree = declaration !== undefined || prefixOf(source) !== undefined;
  return (
    <>
      <div class="fields">
        <Choice
          label="Field source"
          value={source}
          options={sources}
          choose={(chosen) => change(withSource(condition, chosen))}
        />
        {source === 'reference' && known.sums.size > 0 ? (
          <Choice
            label="Aggregation"
            value={field}
            options={[...known.sums.keys()].map((id) => `aggregation.${id}`)}
            textOf={(each) => sumOf({ field: each }, known)?.name ?? each}
            choose={(chosen) => change(withField(condition, chosen))}
          />
        ) : isFree ? (
          <label>
            Field
            <input
              value={field}
              title={names.join(', ')}
              onChange={({ currentTarget }) => change(withField(condition, currentTarget.value))}
            />
          </label>
        ) : (
          <Choice
            label="Field"
            value={field}
            options={names}
            choose={(chosen) => change(withField(condition, chosen))}
          />
        )}
        <Choice
          label="Operator"
          value={operator}
          options={operatorsOf(condition)}
          textOf={operatorText}
          choose={(chosen) => change(withOperator(condition, chosen))}
        />
        <ValueField condition={condition} unit={unit} names={known} change={change} />
      </div>
      <p class="small quiet">
        <Marked
          text={
            declaration === undefined
              ? aboutSource(source)
              : `${aboutSource(source)} The JSON below has its \`${declaration}\`.`
          }
        />
      </p>
    </>
  );
}

function ValueField({
  condition,
  unit,
  names,
  change,
}: {
  readonly condition: Condition;
  readonly unit: AmountUnit | undefined;
  readonly names: NamedParts;
  readonly change: (condition: Condition) => void;
}) {
  const { form, mode, example, choices } = valueInputOf(condition);
  const values = [condition.value].flat();
  if (form === 'choice') {
    return (
      <Choice
        label="Value"
        value={values[0] ?? ''}
        options={choices}
        choose={(value) => change({ ...condition, value })}
      />
    );
  }
  if (condition.operator === 'in_condition_set' && names.sets.size > 0) {
    return (
      <Choice
        label="Condition set"
        value={values[0] ?? ''}
        options={[...names.sets.keys()]}
        textOf={(id) => names.sets.get(id) ?? id}
        choose={(value) => change({ ...condition, value })}
      />
    );
  }
  if (form === 'lines') {
    return (
      <label class="wide">
        Values, one on each line
        <textarea
          rows={3}
          placeholder={example}
          value={values.join('\n')}
          onInput={({ currentTarget }) => change({ ...condition, value: currentTarget.value.split('\n') })}
        />
      </label>
    );
  }
  if (unit !== undefined && condition.operator !== 'in_condition_set') {
    return (
      <AmountField value={values[0] ?? ''} unit={unit} change={(value) => change({ ...condition, value })} />
    );
  }
  return (
    <label class="wide">
      Value
      <input
        inputMode={mode}
        placeholder={example}
        value={values[0]}
        onInput={({ currentTarget }) => change({ ...condition, value: currentTarget.value })}
      />
    </label>
  );
}

/** An amount in whole units of its asset. The draft has it in base units. */
function AmountField({
  value,
  unit,
  change,
}: {
  readonly value: string;
  readonly unit: AmountUnit;
  readonly change: (value: string) => void;
}) {
  const typed = useSignal('');
  const read = (text: string): string => baseUnits(text, unit) ?? text;
  // While the typed text stands for the draft's value, it is shown unchanged, such as `0.` on the way to `0.5`.
  const shown = read(typed.value) === value ? typed.value : (amountText(value, unit) ?? value);
  return (
    <label class="wide">
      Value in {unit.symbol}
      <input
        inputMode="decimal"
        placeholder="0.1"
        value={shown}
        onInput={({ currentTarget }) => {
          typed.value = currentTarget.value;
          change(read(currentTarget.value));
        }}
      />
      {amountText(value, unit) !== undefined && <small>{groupedText(value)} base units</small>}
    </label>
  );
}

/** A choice that also shows a value that is not among its options. */
function Choice(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly isFixed?: boolean;
  readonly textOf?: (option: string) => string;
  readonly choose: (option: string) => void;
}) {
  const { value, options, textOf = (option) => option } = props;
  const shown = options.includes(value) ? options : [value, ...options];
  return (
    <label>
      {props.label}
      <select
        value={value}
        disabled={props.isFixed ?? false}
        onChange={({ currentTarget }) => props.choose(currentTarget.value)}
      >
        {shown.map((option) => (
          <option key={option} value={option}>
            {textOf(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

function IconButton({
  label,
  icon,
  press,
}: {
  readonly label: string;
  readonly icon: typeof Plus;
  readonly press: () => void;
}) {
  return (
    <button type="button" class="plain" aria-label={label} title={label} onClick={press}>
      <Icon of={icon} />
    </button>
  );
}

export function Issues({ issues }: { readonly issues: readonly Issue[] }) {
  if (issues.length === 0) return null;
  return (
    <ul class="tree bad" role="alert">
      {issues.map(({ pointer, message }) => (
        <li key={`${pointer} ${message}`}>
          <code>{pointer}</code> {message}
        </li>
      ))}
    </ul>
  );
}
