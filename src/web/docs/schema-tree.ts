import { element, prose } from './element.ts';
import type { Parameter, Schema, Schemas } from './operation-document.ts';
import { kindOf, type Row, resolve, rowsOf, rulesOf } from './schema-facts.ts';

/** Returns the rows of a schema as a tree. Child rows are created when their parent is unfolded. */
export function schemaTree(schema: Schema, schemas: Schemas): HTMLElement {
  const rows = rowsOf(schema, schemas);
  if (rows.length === 0)
    return rowItem({ name: kindOf(schema, schemas), schema, isRequired: false }, schemas);
  return list(rows, schemas);
}

/** Returns the parameters of an operation as rows like those of a schema, required parameters first. */
export function parameterTree(parameters: readonly Parameter[], schemas: Schemas): HTMLElement {
  const rows = parameters.map(({ name, schema, description, required, in: place }) => ({
    name,
    // The parameter's own description replaces the schema's.
    schema: description === undefined ? schema : { ...schema, description },
    isRequired: required === true,
    place,
  }));
  return list(
    [...rows].sort((a, b) => Number(b.isRequired) - Number(a.isRequired)),
    schemas,
  );
}

interface ShownRow extends Row {
  /** The part of the request that contains the value, such as the path or the query. */
  readonly place?: string;
}

function list(rows: readonly ShownRow[], schemas: Schemas): HTMLUListElement {
  return element('ul', { class: 'tree' }, ...rows.map((row) => element('li', {}, rowItem(row, schemas))));
}

function rowItem(row: ShownRow, schemas: Schemas): HTMLElement {
  const below = rowsOf(row.schema, schemas);
  const place = row.place === undefined ? '' : ` in ${row.place}`;
  const title = [
    element('code', { class: 'name' }, row.name),
    ' ',
    element('span', { class: 'kind' }, `${kindOf(row.schema, schemas)}${place}`),
    row.isRequired ? element('span', { class: 'required' }, 'required') : undefined,
  ];
  const facts = factsOf(row.schema, schemas);
  const shown = element('div', { class: 'row' }, element('p', { class: 'title' }, ...title), ...facts);
  if (below.length === 0) return shown;
  const summary = element('summary', {}, `Show ${titleOfRows(below)}`);
  const details = element('details', {}, summary);
  details.addEventListener('toggle', () => {
    summary.textContent = `${details.open ? 'Hide' : 'Show'} ${titleOfRows(below)}`;
    if (details.open && details.childElementCount === 1) details.append(list(below, schemas));
  });
  shown.append(details);
  return shown;
}

/**
 * Returns the title of a list of rows. It counts branches and properties separately: a reader chooses one branch, but
 * fills in the properties.
 */
function titleOfRows(rows: readonly Row[]): string {
  const isBranch = rows.every(({ isBranch: is }) => is === true);
  if (isBranch) return rows.length === 1 ? 'the variant' : `the ${rows.length} variants`;
  return rows.length === 1 ? '1 property' : `${rows.length} properties`;
}

function factsOf(given: Schema, schemas: Schemas): HTMLElement[] {
  const schema = resolve(given, schemas);
  const rules = rulesOf(schema, schemas);
  return [
    ...(schema.description === undefined ? [] : [element('p', {}, prose(schema.description))]),
    ...(schema.enum === undefined ? [] : [valueList(schema.enum)]),
    ...(rules.length === 0 ? [] : [element('p', { class: 'rules' }, prose(`${rules.join(' · ')}.`))]),
  ];
}

const MAX_SHOWN = 12;

/** Returns the permitted values. A long list, for example of all chains, is folded. */
function valueList(values: readonly unknown[]): HTMLElement {
  const shown = prose(values.map((value) => `\`${String(value)}\``).join(' '));
  if (values.length <= MAX_SHOWN) return element('p', { class: 'values' }, 'One of ', shown);
  return element(
    'details',
    { class: 'values' },
    element('summary', {}, `One of ${values.length} values`),
    element('p', {}, shown),
  );
}
