import { ConfigError } from '../../config.ts';
import type { Workflow } from './document.ts';
import { isObject } from './shape.ts';

type Inputs = Readonly<Record<string, unknown>>;

const checks: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};

/**
 * The inputs of each workflow: what is given, and the defaults of its schema. Of the schema, `required`, `type` and
 * `default` count.
 *
 * @throws ConfigError for inputs that no workflow has, that are missing, or that have another type.
 */
export function readInputs(workflows: readonly Workflow[], given: Inputs): ReadonlyMap<string, Inputs> {
  const faults: string[] = [];
  const known = workflows.flatMap(({ inputs }) => Object.keys(inputs?.properties ?? {}));
  for (const name of Object.keys(given))
    if (!known.includes(name)) faults.push(`no workflow has the input \`${name}\``);
  const read = workflows.map(({ workflowId, inputs = {} }): [string, Inputs] => {
    const { properties = {}, required = [] } = inputs;
    const values: Record<string, unknown> = {};
    for (const [name, { type, default: usual }] of Object.entries(properties)) {
      const value = given[name] === undefined ? usual : given[name];
      if (value === undefined) continue;
      values[name] = value;
      const types = [type ?? []].flat();
      if (types.length > 0 && !types.some((each) => checks[each]?.(value) === true))
        faults.push(`input \`${name}\`: expected ${types.join(' or ')}, got \`${JSON.stringify(value)}\``);
    }
    for (const name of required)
      if (values[name] === undefined) faults.push(`the workflow ${workflowId} needs the input \`${name}\``);
    return [workflowId, values];
  });
  if (faults.length > 0) throw new ConfigError('invalid inputs:', faults);
  return new Map(read);
}
