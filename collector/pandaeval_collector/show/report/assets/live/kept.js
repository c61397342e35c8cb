// Data that this browser keeps for its user: saved views, columns of lists, and the user's name.

function kept(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`pandaeval.${name}`)) ?? otherwise;
  } catch {
    return otherwise; // a browser may refuse, and anybody may have written there
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`pandaeval.${name}`, JSON.stringify(value));
  } catch {
    // the page asks again
  }
}
