// What this browser keeps for whoever looks: saved views, columns of lists, and their name.

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
    // it is asked again
  }
}
